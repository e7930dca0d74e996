package io.icebergcrypto;

/**
 * An operation that cannot be done on an encrypted table, or not in this version.
 *
 * <p>See docs/errors.md#notsupportederror.
 */
public class NotSupportedException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String)}. */
  public NotSupportedException(String problem, String hint) {
    super(problem, hint);
  }

  /** See {@link IcebergCryptoException#IcebergCryptoException(String, String, Throwable)}. */
  public NotSupportedException(String problem, String hint, Throwable cause) {
    super(problem, hint, cause);
  }

  /**
   * The refusal of a metadata table, where a table itself is needed.
   *
   * @param name the metadata table's full name
   */
  public static IcebergCryptoException ofMetadataTable(String name) {
    return new NotSupportedException(
            "it is not a table with files of its own",
            "Name the table itself, not one of its metadata tables.")
        .inTable(name);
  }
}
