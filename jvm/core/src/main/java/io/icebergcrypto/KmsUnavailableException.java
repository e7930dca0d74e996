package io.icebergcrypto;

/**
 * The KMS did not answer, not in time, or not now (overloaded, sealed). The one error that is
 * transient: the same call may work later, and only this error is tried again.
 *
 * <p>See docs/errors.md#kmsunavailableerror.
 */
public class KmsUnavailableException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KmsUnavailableException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KmsUnavailableException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
