package io.icebergcrypto;

/**
 * A wrapped key is not one that this master key wrapped: changed, of another key, or of another
 * KMS.
 *
 * <p>See docs/errors.md#badwrappedkeyerror.
 */
public class BadWrappedKeyException extends TamperedException {
  private static final long serialVersionUID = 1L;

  private boolean answered;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public BadWrappedKeyException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public BadWrappedKeyException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /** The error of a KMS that answered, with bytes that are not the key. */
  public static BadWrappedKeyException ofAnswer(String problem, String hint) {
    BadWrappedKeyException error = new BadWrappedKeyException(problem, hint);
    error.answered = true;
    return error;
  }

  /**
   * Whether the KMS answered, with bytes that are not the key. Then it is the KMS that may be
   * wrong, and the key need not be lost.
   */
  public boolean answered() {
    return answered;
  }
}
