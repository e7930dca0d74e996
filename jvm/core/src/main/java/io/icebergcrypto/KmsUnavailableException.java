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
}
