package io.icebergcrypto;

/**
 * A wrapped key is not one that this master key wrapped: changed, of another key, or of another
 * KMS.
 */
public class BadWrappedKeyException extends TamperedException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public BadWrappedKeyException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public BadWrappedKeyException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
