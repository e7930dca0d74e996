package io.icebergcrypto;

/**
 * A file of an encrypted table is not encrypted.
 *
 * <p>See docs/errors.md#plaintextfounderror.
 */
public class PlaintextException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public PlaintextException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public PlaintextException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
