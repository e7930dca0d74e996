package io.icebergcrypto;

/**
 * A property of a catalog or of a table has a value that cannot be used.
 *
 * <p>See docs/errors.md#configurationerror.
 */
public class InvalidConfigurationException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public InvalidConfigurationException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public InvalidConfigurationException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
