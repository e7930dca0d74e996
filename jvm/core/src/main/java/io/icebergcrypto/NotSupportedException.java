package io.icebergcrypto;

/**
 * An operation that cannot be done on an encrypted table, or not in this version.
 *
 * <p>See docs/errors.md#notsupportederror.
 */
public class NotSupportedException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public NotSupportedException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public NotSupportedException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
