package io.icebergcrypto;

/**
 * A table has no keys, as it is not encrypted and, as far as its metadata shows, never was.
 *
 * <p>See docs/errors.md#notencryptederror.
 */
public class NotEncryptedException extends NotSupportedException {
  private static final long serialVersionUID = 1L;

  /**
   * Makes one.
   *
   * @param hint what to do about it
   */
  public NotEncryptedException(String hint) {
    super("it has no encryption.key-id: it is not encrypted, and has no keys", hint);
  }
}
