package io.icebergcrypto.config;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.KmsProperties;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.TableIdentifier;

/** What the properties of a catalog say. Values that are not understood are refused. */
public final class CatalogSettings {
  private static final String MOST_DAYS = "730"; // NIST SP 800-57, and Iceberg

  private final Map<String, String> properties;
  private final boolean encryptionRequired;
  private final AllowedKeyIds allowedKeyIds;
  private final boolean plaintextFiles;
  private final boolean filesWithoutLength;
  private final boolean refusesPlaintextTables;
  private final boolean exposesKeyMetadata;
  private final StatisticsPolicy statistics;
  private final int kekMaxAgeDays;
  private final TableIdentifier valueKeyTable;

  /**
   * Reads the properties.
   *
   * @throws InvalidConfigurationException when one is misspelt or has a value that it may not have
   */
  public CatalogSettings(Map<String, String> properties) {
    PropertyNames.checkCatalog(properties);
    this.properties = properties;
    this.refusesPlaintextTables = choice(EncryptionProperties.PLAINTEXT_TABLES, "allow", "refuse");
    this.encryptionRequired =
        choice(EncryptionProperties.REQUIRED, "false", "true") || refusesPlaintextTables;
    this.allowedKeyIds = AllowedKeyIds.parse(properties.get(EncryptionProperties.ALLOWED_KEY_IDS));
    checkKeysOfNewTables();
    this.plaintextFiles = choice(EncryptionProperties.PLAINTEXT_FILES, "refuse", "allow");
    this.filesWithoutLength = choice(EncryptionProperties.FILES_WITHOUT_LENGTH, "refuse", "accept");
    this.exposesKeyMetadata = choice(EncryptionProperties.EXPOSE_KEY_METADATA, "false", "true");
    this.statistics = statisticsPolicy();
    this.kekMaxAgeDays = daysOfAKek();
    this.valueKeyTable = ValueKeyProperties.table(properties);
  }

  /** Whether every new table must have a key id. */
  public boolean encryptionRequired() {
    return encryptionRequired;
  }

  /** The master keys that tables may name. */
  public AllowedKeyIds allowedKeyIds() {
    return allowedKeyIds;
  }

  /** A catalog that gives new tables a key that they may not have would make none. */
  private void checkKeysOfNewTables() {
    for (String prefix :
        List.of(CatalogProperties.TABLE_DEFAULT_PREFIX, CatalogProperties.TABLE_OVERRIDE_PREFIX)) {
      String keyId = properties.get(prefix + EncryptionProperties.KEY_ID);
      if (keyId != null && !allowedKeyIds.allows(keyId)) {
        IcebergCryptoException refusal = allowedKeyIds.refused(keyId);
        throw new InvalidConfigurationException(
            "Property " + prefix + refusal.problem(), refusal.hint());
      }
    }
  }

  /** Whether files without a key may be in encrypted tables. */
  public boolean plaintextFiles() {
    return plaintextFiles;
  }

  /** Whether encrypted files are read whose length nothing gives that is authenticated. */
  public boolean filesWithoutLength() {
    return filesWithoutLength;
  }

  /** Whether a table without a key id is refused when it is loaded. */
  public boolean refusesPlaintextTables() {
    return refusesPlaintextTables;
  }

  /** Whether a SQL user may read data keys in metadata tables. */
  public boolean exposesKeyMetadata() {
    return exposesKeyMetadata;
  }

  /** What becomes of statistics files of encrypted tables. */
  public StatisticsPolicy statistics() {
    return statistics;
  }

  /** The age in days from which on a KEK is overdue. */
  public int kekMaxAgeDays() {
    return kekMaxAgeDays;
  }

  /** The table that keeps the value keys of the catalog. */
  public TableIdentifier valueKeyTable() {
    return valueKeyTable;
  }

  /** What the catalog behind is configured with. */
  public Map<String, String> propertiesBehind() {
    Map<String, String> behind = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    behind.putAll(properties);
    String type = behind.remove(EncryptionProperties.CATALOG_TYPE);
    String impl = behind.remove(EncryptionProperties.CATALOG_IMPL);
    if ((type == null) == (impl == null)) {
      throw new InvalidConfigurationException(
          String.format(
              "It must have one of the properties %s and %s; it has %s",
              EncryptionProperties.CATALOG_TYPE,
              EncryptionProperties.CATALOG_IMPL,
              type == null ? "none" : "both"),
          "Name the catalog that keeps the tables, for example "
              + EncryptionProperties.CATALOG_TYPE
              + "=rest.");
    }

    behind.remove(CatalogUtil.ICEBERG_CATALOG_TYPE);
    behind.remove(CatalogProperties.CATALOG_IMPL);
    behind.remove(KmsProperties.KMS_TYPE);
    behind.remove(KmsProperties.KMS_IMPL);
    if (type != null) {
      behind.put(CatalogUtil.ICEBERG_CATALOG_TYPE, type);
    } else {
      behind.put(CatalogProperties.CATALOG_IMPL, impl);
    }

    return behind;
  }

  /**
   * Whether the metadata of encrypted tables is to be authenticated.
   *
   * @param byDefault what holds for this class of catalog when the property is left out
   */
  public boolean authenticatesMetadata(boolean byDefault) {
    boolean notTheDefault =
        choice(
            EncryptionProperties.METADATA_AUTHENTICATION,
            byDefault ? "require" : "off",
            byDefault ? "off" : "require");
    return byDefault != notTheDefault;
  }

  /**
   * Reads a catalog property that has one of two values.
   *
   * @return whether it is the second one
   * @throws InvalidConfigurationException for a third one: what is not understood is not guessed
   */
  private boolean choice(String property, String otherwise, String wanted) {
    String value = properties.getOrDefault(property, otherwise).trim();
    if (!value.equalsIgnoreCase(otherwise) && !value.equalsIgnoreCase(wanted)) {
      throw new InvalidConfigurationException(
          String.format("Property %s is '%s'", property, value),
          String.format("Use %s (the default) or %s.", otherwise, wanted));
    }

    return value.equalsIgnoreCase(wanted);
  }

  /**
   * Reads what a catalog does with statistics files.
   *
   * @throws InvalidConfigurationException for a value that is not understood
   */
  private StatisticsPolicy statisticsPolicy() {
    String value = properties.getOrDefault(EncryptionProperties.STATISTICS, "refuse").trim();
    return switch (value.toLowerCase(Locale.ROOT)) {
      case "refuse" -> StatisticsPolicy.REFUSE;
      case "encrypt" -> StatisticsPolicy.ENCRYPT;
      case "plaintext" -> StatisticsPolicy.PLAINTEXT;
      default ->
          throw new InvalidConfigurationException(
              String.format("Property %s is '%s'", EncryptionProperties.STATISTICS, value),
              "Use refuse (the default), encrypt or plaintext.");
    };
  }

  /** Iceberg uses no KEK that is older than 730 days, so a longer time would mean nothing. */
  private int daysOfAKek() {
    String value = properties.getOrDefault(EncryptionProperties.KEK_MAX_AGE_DAYS, MOST_DAYS).trim();
    if (!value.matches("[1-9][0-9]{0,2}")
        || Integer.parseInt(value) > Integer.parseInt(MOST_DAYS)) {
      throw new InvalidConfigurationException(
          String.format("Property %s is '%s'", EncryptionProperties.KEK_MAX_AGE_DAYS, value),
          String.format("Use a number of days from 1 to %s (the default).", MOST_DAYS));
    }

    return Integer.parseInt(value);
  }
}
