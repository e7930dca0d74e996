package io.icebergcrypto.config;

/** The versions of Iceberg that this build is for. */
public final class IcebergVersions {
  /** The oldest, as major and minor version. */
  static final String FROM = "1.12";

  /** The first that it is not for. */
  static final String BELOW = "2.0";

  /**
   * Whether this Iceberg encrypts deletion vectors and forgets their keys: nobody can read such a
   * file.
   */
  public static final boolean LOSES_KEYS_OF_DELETION_VECTORS = false;

  /** Whether this Iceberg's operations of a Hive table add the keys again that a commit removes. */
  public static final boolean KEEPS_REMOVED_KEYS_ON_HIVE = false;

  private IcebergVersions() {}
}
