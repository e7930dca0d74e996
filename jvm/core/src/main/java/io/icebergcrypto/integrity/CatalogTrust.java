package io.icebergcrypto.integrity;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * How far the class of the catalog behind can be trusted with metadata. Some keep no more than a
 * pointer to metadata.json; there the metadata must be authenticated.
 */
public final class CatalogTrust {
  private CatalogTrust() {}

  /**
   * Whether the metadata of encrypted tables is authenticated.
   *
   * @param delegate the catalog behind
   * @throws InvalidConfigurationException when that is wanted of a catalog for which it is not made
   */
  public static boolean authenticatesMetadata(Catalog delegate, CatalogSettings settings) {
    boolean pointerOnly = keepsPointerOnly(delegate);
    boolean wanted = settings.authenticatesMetadata(pointerOnly);
    if (wanted && !pointerOnly) {
      throw new InvalidConfigurationException(
          String.format(
              "It has %s=require, but this is not meant for catalog class %s",
              EncryptionProperties.METADATA_AUTHENTICATION, delegate.getClass().getName()),
          "Leave the property out: it is for JDBC, Hadoop, Glue and Nessie catalogs. A Hive"
              + " metastore keeps a hash of the metadata, and a REST server writes the metadata"
              + " itself.");
    }

    return wanted;
  }

  /** What vouches for the metadata of encrypted tables where this catalog does not, if anything. */
  public static MetadataAuthentication withoutAuthentication(Catalog delegate) {
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

  /** Table properties that a catalog sets in what it loads, regardless of the metadata file. */
  public static Set<String> setOnLoad(Catalog delegate) {
    // Nessie's commit, and that it is not to warn of a table whose files Iceberg may delete
    return isNessie(delegate) ? Set.of("nessie.commit.id", "nessie.gc.no-warning") : Set.of();
  }

  /**
   * Whether files of a table may be those of another table or branch, too. On Nessie other branches
   * reach them unless the table says that they do not.
   *
   * @param gcEnabled the table's gc.enabled; null: it has none
   */
  public static boolean mayShareFiles(Catalog delegate, String gcEnabled) {
    return gcEnabled == null ? isNessie(delegate) : !Boolean.parseBoolean(gcEnabled);
  }

  /**
   * Checks that no other branch may need the files of a table. Where gc.enabled is false, as in
   * tables that Nessie itself creates, Iceberg refuses; tables that it registers have none.
   *
   * @param table its full name
   * @param properties its properties
   * @throws InvalidConfigurationException before anything is deleted
   */
  public static void requireOwnFiles(
      Catalog delegate, String table, Map<String, String> properties) {
    String gcEnabled = properties.get(TableProperties.GC_ENABLED);
    if (gcEnabled == null && mayShareFiles(delegate, gcEnabled)) {
      throw new InvalidConfigurationException(
              "nothing was deleted: without gc.enabled=true, other branches may need its files",
              "Keep them. Set gc.enabled=true only if no other branch, tag or older commit is to be"
                  + " read any more.")
          .inTable(table);
    }
  }

  /** Whether it is a Hive catalog. */
  public static boolean isHive(Catalog delegate) {
    return isA(delegate, CatalogUtil.ICEBERG_CATALOG_HIVE);
  }

  /** Whether it is a Nessie catalog. */
  public static boolean isNessie(Catalog delegate) {
    return isA(delegate, CatalogUtil.ICEBERG_CATALOG_NESSIE);
  }

  private static boolean keepsPointerOnly(Catalog delegate) {
    return delegate instanceof JdbcCatalog
        || delegate instanceof HadoopCatalog
        || isA(delegate, CatalogUtil.ICEBERG_CATALOG_GLUE)
        || isNessie(delegate);
  }

  /** By name: Iceberg's classes for Hive, Glue and Nessie need libraries that may be absent. */
  private static boolean isA(Catalog catalog, String className) {
    for (Class<?> type = catalog.getClass(); type != null; type = type.getSuperclass()) {
      if (type.getName().equals(className)) {
        return true;
      }
    }

    return false;
  }
}
