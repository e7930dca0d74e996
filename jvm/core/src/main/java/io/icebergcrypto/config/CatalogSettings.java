package io.icebergcrypto.config;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.integrity.MetadataFileIO;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.config.KmsProperties;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.common.DynConstructors;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalog;

/** What the properties of a catalog say. What is not understood is refused, not guessed. */
public final class CatalogSettings {
  private final Map<String, String> properties;
  private final boolean encryptionRequired;
  private final AllowedKeyIds allowedKeyIds;
  private final boolean plaintextFiles;
  private final boolean refusesPlaintextTables;
  private final boolean exposesKeyMetadata;
  private final StatisticsPolicy statistics;

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
    this.exposesKeyMetadata = choice(EncryptionProperties.EXPOSE_KEY_METADATA, "false", "true");
    this.statistics = statisticsPolicy();
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

  /** What the catalog behind is configured with. */
  public Map<String, String> propertiesBehind() {
    Map<String, String> behind = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    behind.putAll(properties);
    String type = behind.remove(EncryptedCatalog.CATALOG_TYPE);
    String impl = behind.remove(EncryptedCatalog.CATALOG_IMPL);
    if ((type == null) == (impl == null)) {
      throw new InvalidConfigurationException(
          String.format(
              "It must have one of the properties %s and %s; it has %s",
              EncryptedCatalog.CATALOG_TYPE,
              EncryptedCatalog.CATALOG_IMPL,
              type == null ? "none" : "both"),
          "Name the catalog that keeps the tables, for example "
              + EncryptedCatalog.CATALOG_TYPE
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

    if ("jdbc".equalsIgnoreCase(type) || CatalogUtil.ICEBERG_CATALOG_JDBC.equals(impl)) {
      MetadataFileIO.configure(behind, "org.apache.iceberg.hadoop.HadoopFileIO");
    } else if ("glue".equalsIgnoreCase(type) || CatalogUtil.ICEBERG_CATALOG_GLUE.equals(impl)) {
      MetadataFileIO.configure(behind, "org.apache.iceberg.aws.s3.S3FileIO");
    }

    return behind;
  }

  /** The factory of tables' encryption managers. */
  public EncryptionManagerFactory newManagerFactory() {
    String impl = properties.get(EncryptionProperties.MANAGER_IMPL);
    if (impl == null) {
      return TableEncryptionManager::new;
    }

    try {
      EncryptionManagerFactory factory =
          DynConstructors.builder(EncryptionManagerFactory.class)
              .loader(Thread.currentThread().getContextClassLoader())
              .impl(impl)
              .<EncryptionManagerFactory>buildChecked()
              .newInstance();
      factory.initialize(properties);
      return factory;
    } catch (NoSuchMethodException | ClassCastException e) {
      throw new InvalidConfigurationException(
          String.format(
              "%s=%s cannot be used: no class of this name with a no-argument constructor that"
                  + " implements EncryptionManagerFactory is on the class path",
              EncryptionProperties.MANAGER_IMPL, impl),
          "Check the spelling, and that the class's jar is in spark.jars; or leave the property"
              + " out.",
          e);
    }
  }

  /**
   * Whether the metadata of encrypted tables is authenticated.
   *
   * @param delegate the catalog behind
   */
  public boolean authenticatesMetadata(Catalog delegate) {
    boolean pointerOnly = keepsPointerOnly(delegate);
    boolean notTheDefault =
        choice(
            EncryptionProperties.METADATA_AUTHENTICATION,
            pointerOnly ? "require" : "off",
            pointerOnly ? "off" : "require");
    if (!pointerOnly && notTheDefault) {
      throw new InvalidConfigurationException(
          String.format(
              "It has %s=require, and catalog class %s is not one that this is made for",
              EncryptionProperties.METADATA_AUTHENTICATION, delegate.getClass().getName()),
          "Leave the property out: it is for JDBC, Hadoop, Glue and Nessie catalogs. A Hive"
              + " metastore keeps a hash of the metadata, and a REST server writes the metadata"
              + " itself.");
    }

    return pointerOnly && !notTheDefault;
  }

  /** By name where Iceberg's class needs libraries that may be absent. */
  private static boolean keepsPointerOnly(Catalog delegate) {
    return delegate instanceof JdbcCatalog
        || delegate instanceof HadoopCatalog
        || isA(delegate, CatalogUtil.ICEBERG_CATALOG_GLUE)
        || isA(delegate, CatalogUtil.ICEBERG_CATALOG_NESSIE);
  }

  /**
   * Table properties that a catalog sets in what it loads, whatever the metadata file says.
   *
   * @param delegate the catalog behind
   */
  public static Set<String> setOnLoad(Catalog delegate) {
    // Nessie's commit, and that it is not to warn of a table whose files Iceberg may delete
    return isA(delegate, CatalogUtil.ICEBERG_CATALOG_NESSIE)
        ? Set.of("nessie.commit.id", "nessie.gc.no-warning")
        : Set.of();
  }

  /** Whether a catalog is of a class, which need not be on the class path, or of a child of it. */
  public static boolean isA(Catalog catalog, String className) {
    for (Class<?> type = catalog.getClass(); type != null; type = type.getSuperclass()) {
      if (type.getName().equals(className)) {
        return true;
      }
    }

    return false;
  }

  /**
   * What stands for the metadata of encrypted tables where this catalog does not authenticate it.
   *
   * @param delegate the catalog behind
   */
  public MetadataAuthentication insteadOfAuthentication(Catalog delegate) {
    if (delegate instanceof RESTCatalog) {
      return new MetadataAuthentication(
          false, "the REST server writes the metadata, and is trusted with it");
    }

    if (delegate.getClass().getName().equals(CatalogUtil.ICEBERG_CATALOG_HIVE)) {
      return new MetadataAuthentication(
          true, "each load checks the hash that the Hive metastore has of it");
    }

    return new MetadataAuthentication(
        false,
        keepsPointerOnly(delegate)
            ? "the catalog has " + EncryptionProperties.METADATA_AUTHENTICATION + "=off"
            : "this is not done for catalog class " + delegate.getClass().getName());
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
}
