package io.icebergcrypto;

/**
 * The KMS did not answer, not in time, or not now (overloaded, sealed). The one error that is
 * transient: the same call may work later, and only this error is tried again.
 *
 * <p>See docs/errors.md#kmsunavailableerror.
 */
public class KmsUnavailableException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  private boolean throttled;
  private boolean ofWrappedKey;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KmsUnavailableException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KmsUnavailableException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /**
   * Says whether the KMS answered that it is asked too often. Such a call is tried again until its
   * time is over, at random times, and no circuit breaker counts it.
   *
   * @return the error with that
   */
  public KmsUnavailableException throttledIf(boolean tooOften) {
    KmsUnavailableException copy = (KmsUnavailableException) copy();
    copy.throttled = tooOften;
    return copy;
  }

  /** Whether the KMS answered that it is asked too often. */
  public boolean isThrottled() {
    return throttled;
  }

  /**
   * Says that the KMS answered, and that only this wrapped key cannot be unwrapped now. It is tried
   * again, and no circuit breaker counts it: other keys of the same master key may be unwrapped.
   *
   * @return the error with that
   */
  public KmsUnavailableException ofWrappedKey() {
    KmsUnavailableException copy = (KmsUnavailableException) copy();
    copy.ofWrappedKey = true;
    return copy;
  }

  /** Whether the KMS answered, and only this wrapped key cannot be unwrapped now. */
  public boolean isOfWrappedKey() {
    return ofWrappedKey;
  }
}
