package io.icebergcrypto;

/**
 * The KMS, or its file, may not be used by this user: a wrong password, token or permission.
 *
 * <p>See docs/errors.md#accessdeniederror.
 */
public class AccessDeniedException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  private boolean ofKey = true;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public AccessDeniedException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public AccessDeniedException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /**
   * Says whether the KMS refused this key to this user. Other refusals are of every key, such as
   * from a network or with a token that lacks a scope: no value is replaced by NULL, or by a mask,
   * for those.
   *
   * @param known whether the KMS's answer proves it
   * @return the error with that
   */
  public AccessDeniedException ofKeyIf(boolean known) {
    AccessDeniedException copy = (AccessDeniedException) copy();
    copy.ofKey = known;
    return copy;
  }

  /** Whether the KMS refused this key to this user. */
  public boolean isOfKey() {
    return ofKey;
  }
}
