package io.icebergcrypto;

/**
 * The KMS has no key of this id.
 *
 * <p>See docs/errors.md#keynotfounderror.
 */
public class KeyNotFoundException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KeyNotFoundException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KeyNotFoundException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
