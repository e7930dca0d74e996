package io.icebergcrypto;

/**
 * The KMS has no key of this id.
 *
 * <p>See docs/errors.md#keynotfounderror.
 */
public class KeyNotFoundException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  private boolean ofKey = true;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KeyNotFoundException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KeyNotFoundException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /**
   * Says whether the key itself is gone. Otherwise the KMS lacks only the version that is needed,
   * as an old copy of a keystore does, or another region may have the key: no value is replaced by
   * NULL, or by a mask, for those, and no table counts as lost.
   *
   * @param known whether the KMS's answer proves it
   * @return the error with that
   */
  public KeyNotFoundException ofKeyIf(boolean known) {
    KeyNotFoundException copy = (KeyNotFoundException) copy();
    copy.ofKey = known;
    return copy;
  }

  /** Whether the key itself is gone. */
  public boolean isOfKey() {
    return ofKey;
  }
}
