package io.icebergcrypto;

/** Bytes are not what was written: an authentication tag, a length or a header is wrong. */
public class TamperedException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public TamperedException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public TamperedException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
