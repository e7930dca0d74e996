package io.icebergcrypto;

/**
 * The KMS has the key, and its state forbids its use: disabled, expired or about to be deleted.
 *
 * <p>See docs/errors.md#keydisablederror.
 */
public class KeyDisabledException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KeyDisabledException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KeyDisabledException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
