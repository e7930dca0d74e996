package io.icebergcrypto;

/**
 * The KMS has no key of this id.
 *
 * <p>See docs/errors.md#keynotfounderror.
 */
public class KeyNotFoundException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  private boolean ofVersion;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KeyNotFoundException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KeyNotFoundException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /**
   * Says that the KMS has the key, and lacks the version of it that is needed, as an old copy of a
   * keystore does. That is no answer to who may use the key: no value is replaced by NULL, or by a
   * mask, for it.
   *
   * @return the error with that
   */
  public KeyNotFoundException ofVersion() {
    KeyNotFoundException copy = (KeyNotFoundException) copy();
    copy.ofVersion = true;
    return copy;
  }

  /** Whether the KMS has the key, and lacks the version of it that is needed. */
  public boolean isOfVersion() {
    return ofVersion;
  }
}
