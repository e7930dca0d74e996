package io.icebergcrypto;

/**
 * The KMS, or its file, may not be used by this user: a wrong password, token or permission.
 *
 * <p>See docs/errors.md#accessdeniederror.
 */
public class AccessDeniedException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public AccessDeniedException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public AccessDeniedException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
