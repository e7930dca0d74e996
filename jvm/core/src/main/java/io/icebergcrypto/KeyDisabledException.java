package io.icebergcrypto;

/**
 * The KMS has the key, and its state forbids its use: disabled, expired or about to be deleted.
 *
 * <p>See docs/errors.md#keydisablederror.
 */
public class KeyDisabledException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  private boolean destroyed;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public KeyDisabledException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public KeyDisabledException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /**
   * Says whether the key was destroyed, or is scheduled to be, so that nobody can read what it
   * wrapped. A key that is disabled may be enabled again: no value is replaced by NULL for it.
   *
   * @param known whether the KMS's answer proves it
   * @return the error with that
   */
  public KeyDisabledException destroyedIf(boolean known) {
    KeyDisabledException copy = (KeyDisabledException) copy();
    copy.destroyed = known;
    return copy;
  }

  /** Whether the key was destroyed, or is scheduled to be. */
  public boolean isDestroyed() {
    return destroyed;
  }
}
