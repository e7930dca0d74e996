package io.icebergcrypto.config;

/** The versions of Iceberg that this build is for. */
final class IcebergVersions {
  /** The oldest, as major and minor version. */
  static final String FROM = "1.11";

  /** The first that it is not for. */
  static final String BELOW = "1.12";

  /**
   * Whether the key of a deletion vector, with which it was encrypted, is missing in the manifest.
   */
  static final boolean LOSES_KEYS_OF_DELETION_VECTORS = true;

  /** Whether a commit to a Hive metastore has the table's keys again that it removes. */
  static final boolean KEEPS_REMOVED_KEYS_ON_HIVE = true;

  private IcebergVersions() {}
}
