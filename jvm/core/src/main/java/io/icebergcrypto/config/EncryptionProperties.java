package io.icebergcrypto.config;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;

/**
 * The properties of catalogs and tables that concern encryption, and what values they may have.
 * Table properties are Iceberg's; a table is encrypted when it has {@link #KEY_ID}.
 */
public final class EncryptionProperties {
  /** Table property: the id of the master key in the KMS. */
  public static final String KEY_ID = TableProperties.ENCRYPTION_TABLE_KEY;

  /** Table property: the length of DEKs and KEKs in bytes: 16 (default), 24 or 32. */
  public static final String DATA_KEY_LENGTH = TableProperties.ENCRYPTION_DEK_LENGTH;

  /** The table properties of encryption. */
  public static final List<String> OF_TABLES = List.of(KEY_ID, DATA_KEY_LENGTH);

  /** Catalog property: the type of the catalog behind, such as rest. */
  public static final String CATALOG_TYPE = "encryption.catalog-type";

  /** Catalog property: the class of the catalog behind. */
  public static final String CATALOG_IMPL = "encryption.catalog-impl";

  /** Catalog property: true refuses to create a table without a key id. */
  public static final String REQUIRED = "encryption.required";

  /** Catalog property: the master keys that tables may name, a list of ids and globs. */
  public static final String ALLOWED_KEY_IDS = "encryption.allowed-key-ids";

  /** Catalog property: the class of an EncryptionManagerFactory. */
  public static final String MANAGER_IMPL = "encryption.manager-impl";

  /** Catalog property: refuse (default), encrypt or plaintext. */
  public static final String STATISTICS = "encryption.statistics";

  /** Catalog property: refuse (default) or allow. */
  static final String PLAINTEXT_FILES = "encryption.plaintext-files";

  /** Catalog property: refuse (default) or accept. */
  public static final String FILES_WITHOUT_LENGTH = "encryption.files-without-length";

  /** Catalog property: allow (default) or refuse. */
  public static final String PLAINTEXT_TABLES = "encryption.plaintext-tables";

  /** Catalog property: true shows data keys to anyone who can read metadata tables. */
  public static final String EXPOSE_KEY_METADATA = "encryption.expose-key-metadata";

  /** Catalog property: require (default on JDBC, Hadoop, Glue, Nessie) or off. */
  public static final String METADATA_AUTHENTICATION = "encryption.metadata-authentication";

  /** Catalog property: the age in days from which on reports call a KEK overdue: 1 to 730. */
  public static final String KEK_MAX_AGE_DAYS = "encryption.kek.max-age-days";

  /** Table property of this catalog's own making: the MAC that authenticates the metadata. */
  public static final String METADATA_MAC = "encryption.metadata-mac";

  /**
   * Table property of this catalog's own making: a copy of the metadata that the table had before
   * it was encrypted, whose files stay until they are purged.
   */
  public static final String PLAINTEXT_METADATA = "encryption.plaintext-metadata";

  /** Table property of this catalog's own making: gc.enabled as it was before, if it was set. */
  public static final String PLAINTEXT_GC = "encryption.plaintext-gc-enabled";

  /**
   * Table property of this catalog's own making, while the plaintext is purged: how many old
   * metadata files the user wants to be kept, empty for the default.
   */
  public static final String PLAINTEXT_VERSIONS = "encryption.plaintext-previous-versions-max";

  /**
   * Table property of this catalog's own making, while the plaintext is purged: the step that has
   * begun, after the files of those before were proved gone.
   */
  public static final String PLAINTEXT_PURGE = "encryption.plaintext-purge";

  /**
   * Table property of this catalog's own making: the key id that a table had until it was
   * decrypted. A writer that began before may still bring encrypted files.
   */
  public static final String FORMER_KEY_ID = "encryption.former-key-id";

  /** The table properties of this catalog's own making that lead to plaintext that is left. */
  public static final Set<String> OF_PLAINTEXT =
      Set.of(PLAINTEXT_METADATA, PLAINTEXT_GC, PLAINTEXT_VERSIONS, PLAINTEXT_PURGE);

  /** The table properties that make no sense for a plaintext table. */
  public static Stream<String> ofEncryptedTables() {
    return Stream.concat(
        Stream.of(KEY_ID, TableProperties.ENCRYPTION_DEK_LENGTH, METADATA_MAC),
        OF_PLAINTEXT.stream());
  }

  /** The table properties that choose the version of Parquet's pages. */
  public static final List<String> PAGE_VERSIONS =
      List.of(TableProperties.PARQUET_PAGE_VERSION, TableProperties.DELETE_PARQUET_PAGE_VERSION);

  /** Names of the version whose pages are encrypted as a whole. */
  private static final Set<String> ENCRYPTED_PAGES = Set.of("v1", "parquet_1_0");

  /** The format version of encrypted tables. */
  private static final int ENCRYPTED_FORMAT = 3;

  private EncryptionProperties() {}

  /** The key id that a table has, or null for a table that is not encrypted. */
  public static String keyId(Map<String, String> tableProperties) {
    return tableProperties.get(KEY_ID);
  }

  /**
   * The id of the master key that wrapped a table's KEKs, regardless of its properties. A KEK is a
   * key that no other key of the table encrypts.
   *
   * @return null when the table has no keys, as before its first snapshot
   */
  public static String masterKeyId(TableMetadata metadata) {
    return Keks.masterKeyIds(metadata).findFirst().orElse(null);
  }

  /**
   * Whether a table is encrypted, or was until its key id was removed: keys in its metadata, or the
   * key of the snapshot in force, show it.
   */
  public static boolean wasEncrypted(TableMetadata metadata) {
    Snapshot current = metadata.currentSnapshot();
    return keyId(metadata.properties()) != null
        || !metadata.encryptionKeys().isEmpty()
        || current != null && current.keyId() != null;
  }

  /** The refusal of a plaintext table where the catalog allows encrypted ones only. */
  public static InvalidConfigurationException required(String hint) {
    return new InvalidConfigurationException(
        String.format("it has no %s and the catalog has %s=true", KEY_ID, REQUIRED), hint);
  }

  /**
   * The properties that a new table gets: the catalog's defaults, the statement's own and the
   * catalog's overrides, in Iceberg's order.
   */
  public static Map<String, String> ofNewTable(
      Map<String, String> catalogProperties, Map<String, String> own) {
    Map<String, String> all = new HashMap<>();
    putPrefixed(catalogProperties, CatalogProperties.TABLE_DEFAULT_PREFIX, all);
    all.putAll(own);
    putPrefixed(catalogProperties, CatalogProperties.TABLE_OVERRIDE_PREFIX, all);
    return all;
  }

  private static void putPrefixed(
      Map<String, String> from, String prefix, Map<String, String> into) {
    from.forEach(
        (key, value) -> {
          if (key.startsWith(prefix)) {
            into.put(key.substring(prefix.length()), value);
          }
        });
  }

  /**
   * The length of a table's DEKs.
   *
   * @return 16, 24 or 32 bytes
   * @throws InvalidConfigurationException for any other value
   */
  public static int dataKeyLength(String tableName, Map<String, String> tableProperties) {
    String value = tableProperties.get(DATA_KEY_LENGTH);
    if (!hasDataKeyLength(tableProperties)) {
      throw new InvalidConfigurationException(
              String.format("%s='%s' is not an AES key length", DATA_KEY_LENGTH, value),
              String.format(
                  "Use 16, 24 or 32 (bytes). If another client has set it, %s gives the table"
                      + " the length of its newest KEK; or use ALTER TABLE %s SET TBLPROPERTIES"
                      + " with the length that it had.",
                  SqlNames.call("repair_table", tableName, "confirm => true"), tableName))
          .inTable(tableName);
    }

    return value == null
        ? TableProperties.ENCRYPTION_DEK_LENGTH_DEFAULT
        : Integer.parseInt(value.trim());
  }

  /** Whether the length of a table's DEKs is one that they can have. */
  public static boolean hasDataKeyLength(Map<String, String> tableProperties) {
    String value = tableProperties.get(DATA_KEY_LENGTH);
    return value == null || List.of("16", "24", "32").contains(value.trim());
  }

  /**
   * Checks what an encrypted table's properties say.
   *
   * @param before the properties that are in force, empty for a new table; what does not change is
   *     not checked, so that a table with an old mistake can be repaired
   */
  public static void check(
      String tableName, Map<String, String> before, Map<String, String> after) {
    if (changed(KEY_ID, before, after) && keyId(after).isBlank()) {
      throw new InvalidConfigurationException(
              String.format("%s is empty", KEY_ID),
              "Give the id of a master key in the KMS, or leave the property out for a table that"
                  + " is not encrypted.")
          .inTable(tableName);
    }

    if (changed(DATA_KEY_LENGTH, before, after)) {
      dataKeyLength(tableName, after);
    }

    for (String property :
        new String[] {
          TableProperties.DEFAULT_FILE_FORMAT, TableProperties.DELETE_DEFAULT_FILE_FORMAT
        }) {
      String format = after.getOrDefault(property, "").toLowerCase(Locale.ROOT);
      if (changed(property, before, after) && format.equals("orc")) {
        throw new NotSupportedException(
                String.format("%s=orc, and Iceberg cannot encrypt ORC files", property),
                "Use parquet or avro for an encrypted table.")
            .inTable(tableName);
      }
    }

    for (String property : PAGE_VERSIONS) {
      if (changed(property, before, after)) {
        checkPages(tableName, property, after);
      }
    }
  }

  /**
   * Checks the pages that an encrypted table's writers would make, at the time when they do: the
   * property may have been set by a client that does not know that the table is encrypted.
   *
   * @throws NotSupportedException when parts of them would be plaintext
   */
  public static void checkPages(String tableName, Map<String, String> tableProperties) {
    PAGE_VERSIONS.forEach(property -> checkPages(tableName, property, tableProperties));
  }

  private static void checkPages(
      String tableName, String property, Map<String, String> tableProperties) {
    String version = tableProperties.get(property);
    if (hasPlaintextPages(version)) {
      throw new NotSupportedException(
              String.format(
                  "%s=%s, and Parquet's Java writer leaves parts of such pages in plaintext: which"
                      + " values are null, and how long lists are",
                  property, version),
              String.format(
                  "Use v1 for an encrypted table, or leave the property out. Where it is set: ALTER"
                      + " TABLE %s UNSET TBLPROPERTIES ('%s').",
                  tableName, property))
          .inTable(tableName);
    }
  }

  /**
   * Whether Parquet's Java writer leaves parts of pages of a version in plaintext.
   *
   * @param version the value of one of {@link #PAGE_VERSIONS}; null is v1
   */
  public static boolean hasPlaintextPages(String version) {
    return version != null && !ENCRYPTED_PAGES.contains(version.toLowerCase(Locale.ROOT));
  }

  /**
   * Checks the format version of a new encrypted table.
   *
   * @return true when none is given and {@code format-version} must be set to 3
   */
  public static boolean needsFormatVersion(String tableName, Map<String, String> properties) {
    String version = properties.get(TableProperties.FORMAT_VERSION);
    if (version == null) {
      return true;
    }

    if (version.matches("\\d{1,9}")) {
      refuseLaterFormat(tableName, Integer.parseInt(version));
    }

    if (version.matches("[12]")) {
      throw new InvalidConfigurationException(
              String.format(
                  "%s=%s, but Iceberg encrypts only from format version %d",
                  TableProperties.FORMAT_VERSION, version, ENCRYPTED_FORMAT),
              String.format(
                  "Leave %s out, or set it to %d.",
                  TableProperties.FORMAT_VERSION, ENCRYPTED_FORMAT))
          .inTable(tableName);
    }

    return false;
  }

  /**
   * Refuses encryption in a format for which the Iceberg specification does not define it: that of
   * version 4's root manifests is not defined yet.
   *
   * @throws NotSupportedException when the version is later than 3
   */
  public static void refuseLaterFormat(String tableName, int formatVersion) {
    if (formatVersion > ENCRYPTED_FORMAT) {
      throw new NotSupportedException(
              String.format(
                  "it has, or would have, %s and format version %d, for which Iceberg's"
                      + " specification does not yet define encryption",
                  KEY_ID, formatVersion),
              String.format(
                  "Use format version %d for an encrypted table. Nothing was changed.",
                  ENCRYPTED_FORMAT))
          .inTable(tableName);
    }
  }

  /** Checks the format version that a catalog has given a new encrypted table, asked for 3. */
  public static void checkMadeWith(String tableName, int formatVersion) {
    refuseLaterFormat(tableName, formatVersion);
    if (formatVersion < ENCRYPTED_FORMAT) {
      throw new NotSupportedException(
              String.format(
                  "the catalog's server creates it with format version %d, although %d was"
                      + " requested, the first that Iceberg encrypts",
                  formatVersion, ENCRYPTED_FORMAT),
              "Nothing was written. Use a version of the server that supports that format, or"
                  + " another catalog.")
          .inTable(tableName);
    }
  }

  private static boolean changed(
      String property, Map<String, String> before, Map<String, String> after) {
    return after.containsKey(property)
        && !Objects.equals(before.get(property), after.get(property));
  }
}
