package io.icebergcrypto;

/**
 * The KMS refused the login: a token, credential, pin or password is wrong, missing or expired.
 *
 * <p>See docs/errors.md#loginfailederror.
 */
public class LoginFailedException extends AccessDeniedException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public LoginFailedException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public LoginFailedException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
