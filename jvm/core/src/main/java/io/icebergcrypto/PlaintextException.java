package io.icebergcrypto;

/**
 * A file of an encrypted table is not encrypted.
 *
 * <p>See docs/errors.md#plaintextfounderror.
 */
public class PlaintextException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public PlaintextException(String problem, String hint) {
    super(problem, hint);
  }

  /** A file that an encrypted table has, and has no key for. */
  public static PlaintextException ofFile(String location) {
    return new PlaintextException(
        String.format("file %s is not encrypted: the table has no key for it", location),
        "A client without encryption, or someone with access to catalog and storage, put it"
            + " there: find out who, and verify the table. If its rows are the table's, a"
            + " catalog with encryption.plaintext-files=allow reads them, to write them again."
            + " A snapshot without the file also lacks what was committed since.");
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public PlaintextException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }
}
