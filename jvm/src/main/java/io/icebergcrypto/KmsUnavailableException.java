package io.icebergcrypto;

/** The KMS did not answer, or not in time. */
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
