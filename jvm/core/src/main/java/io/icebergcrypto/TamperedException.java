package io.icebergcrypto;

/**
 * Bytes are not what was written: an authentication tag, a length or a header is wrong.
 *
 * <p>See docs/errors.md#tamperederror.
 */
public class TamperedException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  private final ProblemCode code;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public TamperedException(String problem, String hint) {
    this(problem, hint, null);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public TamperedException(String problem, String hint, Throwable cause) {
    this(ProblemCode.TAMPERED, problem, hint, cause);
  }

  /**
   * See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}.
   *
   * @param code says more closely what is wrong
   */
  public TamperedException(ProblemCode code, String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
    this.code = code;
  }

  /** What is wrong. */
  public ProblemCode code() {
    return code;
  }
}
