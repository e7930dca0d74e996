package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.MetadataAuthentication;
import io.icebergcrypto.integrity.MetadataFileIO;
import io.icebergcrypto.kms.config.KmsProperties;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * The catalog behind, and how its kind differs from the others. Kinds are told by Iceberg's class,
 * and by that one's name where the class needs libraries that may be absent.
 *
 * @param catalog that catalog
 * @param configured the properties of the encrypting catalog
 * @param conf the Hadoop configuration, which may be null
 */
public record CatalogBehind(Catalog catalog, Map<String, String> configured, Object conf) {
  /**
   * What to configure the catalog behind with: the encrypting catalog's properties, but for those
   * that name the KMS.
   *
   * @throws InvalidConfigurationException when they do not name one catalog
   */
  public static Map<String, String> properties(Map<String, String> configured) {
    Map<String, String> behind = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    behind.putAll(configured);
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

    if ("jdbc".equalsIgnoreCase(type) || CatalogUtil.ICEBERG_CATALOG_JDBC.equals(impl)) {
      MetadataFileIO.configure(behind, "org.apache.iceberg.hadoop.HadoopFileIO");
    } else if ("glue".equalsIgnoreCase(type) || CatalogUtil.ICEBERG_CATALOG_GLUE.equals(impl)) {
      MetadataFileIO.configure(behind, "org.apache.iceberg.aws.s3.S3FileIO");
    }

    return behind;
  }

  /** Whether a REST server keeps the tables. */
  public boolean isRest() {
    return catalog instanceof RESTCatalog;
  }

  /** Whether the pointer to a table's metadata is in the storage, too. */
  public boolean isHadoop() {
    return catalog instanceof HadoopCatalog;
  }

  private boolean isHive() {
    return catalog.getClass().getName().equals(CatalogUtil.ICEBERG_CATALOG_HIVE);
  }

  private boolean isNessie() {
    return isA(CatalogUtil.ICEBERG_CATALOG_NESSIE);
  }

  /** Whether it is of a class, which need not be on the class path, or of a child of it. */
  private boolean isA(String className) {
    for (Class<?> type = catalog.getClass(); type != null; type = type.getSuperclass()) {
      if (type.getName().equals(className)) {
        return true;
      }
    }

    return false;
  }

  /** Whether it keeps no more of a table than where its metadata is. */
  private boolean keepsPointerOnly() {
    return catalog instanceof JdbcCatalog
        || isHadoop()
        || isA(CatalogUtil.ICEBERG_CATALOG_GLUE)
        || isNessie();
  }

  /** The properties in force: those that were configured, with those that a REST server adds. */
  public Map<String, String> properties() {
    return catalog instanceof RESTCatalog rest ? rest.properties() : configured;
  }

  /** A FileIO of the class that the catalog behind would take; the caller closes it. */
  public FileIO newFileIO() {
    Map<String, String> all = properties();
    boolean onHadoop = catalog instanceof JdbcCatalog || isHadoop() || isHive();
    Class<? extends FileIO> usual = onHadoop ? HadoopFileIO.class : ResolvingFileIO.class;
    return CatalogUtil.loadFileIO(
        all.getOrDefault(CatalogProperties.FILE_IO_IMPL, usual.getName()), all, conf);
  }

  /** Whether a purge deletes no file: Nessie keeps them, as other branches may reach them. */
  public boolean ignoresPurge() {
    return isNessie();
  }

  /** Whether namespaces have properties there. */
  public boolean keepsNamespaceProperties() {
    return catalog instanceof SupportsNamespaces && !isHadoop();
  }

  /** Table properties that it sets in what it loads, whatever the metadata file says. */
  public Set<String> setOnLoad() {
    // Nessie's commit, and that it is not to warn of a table whose files Iceberg may delete
    return isNessie() ? Set.of("nessie.commit.id", "nessie.gc.no-warning") : Set.of();
  }

  /**
   * Whether the metadata of encrypted tables is authenticated.
   *
   * @throws InvalidConfigurationException when it is to be, and this catalog needs or allows none
   */
  public boolean authenticatesMetadata(CatalogSettings settings) {
    boolean authenticates = settings.authenticatesMetadata(keepsPointerOnly());
    if (authenticates && !keepsPointerOnly()) {
      throw new InvalidConfigurationException(
          String.format(
              "It has %s=require, and catalog class %s is not one that this is made for",
              EncryptionProperties.METADATA_AUTHENTICATION, catalog.getClass().getName()),
          "Leave the property out: it is for JDBC, Hadoop, Glue and Nessie catalogs. A Hive"
              + " metastore keeps a hash of the metadata, and a REST server writes the metadata"
              + " itself.");
    }

    return authenticates;
  }

  /** What stands for the metadata of encrypted tables where it is not authenticated. */
  public MetadataAuthentication insteadOfAuthentication() {
    if (isRest()) {
      return new MetadataAuthentication(
          false, "the REST server writes the metadata, and is trusted with it");
    }

    if (isHive()) {
      return new MetadataAuthentication(
          true, "each load checks the hash that the Hive metastore has of it");
    }

    return new MetadataAuthentication(
        false,
        keepsPointerOnly()
            ? "the catalog has " + EncryptionProperties.METADATA_AUTHENTICATION + "=off"
            : "this is not done for catalog class " + catalog.getClass().getName());
  }

  /** Not of the properties, which may have a password among them. */
  @Override
  public String toString() {
    return catalog.toString();
  }

  /**
   * Drops a table that was made just now, unless somebody has committed to it since.
   *
   * @param made its metadata as it was made, taken then: a table's own go on with its commits
   */
  public void takeBack(TableIdentifier identifier, TableMetadata made) {
    catalog.invalidateTable(identifier);
    TableMetadata now = ((HasTableOperations) catalog.loadTable(identifier)).operations().current();
    if (!Objects.equals(now.uuid(), made.uuid())
        || !Objects.equals(now.metadataFileLocation(), made.metadataFileLocation())
        || now.snapshots().size() != made.snapshots().size()) {
      return;
    }

    try {
      catalog.dropTable(identifier, true); // with the metadata file that the server wrote
    } catch (RuntimeException e) {
      catalog.dropTable(identifier, false); // a server may refuse to purge
    }
  }
}
