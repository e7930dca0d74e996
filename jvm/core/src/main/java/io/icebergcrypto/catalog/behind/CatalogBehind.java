package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.IcebergVersions;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.kms.call.Causes;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.hive.HiveTableOperations;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * The catalog behind, and what its class does differently from others.
 *
 * @param catalog that catalog
 * @param configured the properties of the encrypting catalog
 * @param conf the Hadoop configuration, which may be null
 */
public record CatalogBehind(Catalog catalog, Map<String, String> configured, Object conf) {
  /**
   * Opens the catalog behind.
   *
   * @param properties Iceberg's, with its type or its class
   * @throws InvalidConfigurationException when there is no such type
   * @throws IcebergCryptoException when the REST server cannot be reached; it is named
   */
  public static Catalog open(String name, Map<String, String> properties, Object conf) {
    try {
      return isHadoop(properties)
          ? CatalogUtil.loadCatalog(ReopeningHadoopCatalog.class.getName(), name, properties, conf)
          : CatalogUtil.buildIcebergCatalog(name, properties, conf);
    } catch (UnsupportedOperationException e) { // Iceberg's, of a type
      throw new InvalidConfigurationException(
          String.format(
              "There is no catalog type '%s'", properties.get(CatalogUtil.ICEBERG_CATALOG_TYPE)),
          "The types are hive, rest, jdbc, hadoop, glue and nessie; catalog-impl names the class of"
              + " any other catalog.",
          e);
    } catch (RESTException e) {
      if (!Causes.any(e, IOException.class::isInstance)) {
        throw e; // an answer of the server
      }

      throw new IcebergCryptoException(
          String.format(
              "its REST server, %s, cannot be reached: %s",
              withoutLogin(properties.get(CatalogProperties.URI)), e.getMessage()),
          "Check the uri, and that the server runs and can be reached from this host.",
          e);
    }
  }

  private static boolean isHadoop(Map<String, String> properties) {
    return CatalogUtil.ICEBERG_CATALOG_TYPE_HADOOP.equalsIgnoreCase(
            properties.get(CatalogUtil.ICEBERG_CATALOG_TYPE))
        || HadoopCatalog.class.getName().equals(properties.get(CatalogProperties.CATALOG_IMPL));
  }

  private static String withoutLogin(String uri) {
    return String.valueOf(uri).replaceFirst("//[^/@]*@", "//");
  }

  /** Whether a REST server keeps the tables. */
  public boolean isRest() {
    return catalog instanceof RESTCatalog;
  }

  /**
   * Asks a REST server to begin an encrypted table beside a plaintext one, which is not made: one
   * that cannot keep a key id says so before a file is copied. A server that does not begin tables
   * (or not for this user) is not known until the commit.
   *
   * @throws NotSupportedException when it cannot
   */
  public void checkKeepsKeyId(
      TableIdentifier identifier, String tableName, Schema schema, String keyId) {
    if (!isRest()) {
      return;
    }

    String name = identifier.name() + "_" + UUID.randomUUID().toString().substring(0, 8);
    TableMetadata begun;
    try {
      Transaction transaction =
          catalog
              .buildTable(TableIdentifier.of(identifier.namespace(), name), schema)
              .withProperty(EncryptionProperties.KEY_ID, keyId)
              .withProperty(TableProperties.FORMAT_VERSION, "3")
              .createTransaction();
      begun = ((BaseTransaction) transaction).currentMetadata();
    } catch (RuntimeException e) {
      if (ServerRefusal.isOfKeyId(e, catalog)) {
        throw ServerRefusal.ofKeyId(e).inTable(tableName);
      }

      return;
    }

    if (!keyId.equals(EncryptionProperties.keyId(begun.properties()))) {
      throw new NotSupportedException(
              "the catalog's server creates tables without the "
                  + EncryptionProperties.KEY_ID
                  + " that was requested",
              "Nothing was written. Fix that at the server, or use another catalog.")
          .inTable(tableName);
    }

    EncryptionProperties.checkMadeWith(tableName, begun.formatVersion());
  }

  /** Whether the pointer to a table's metadata is in the storage, too. */
  public boolean isHadoop() {
    return catalog instanceof HadoopCatalog;
  }

  /** Whether a Hive metastore keeps the tables: the one catalog that stock Iceberg encrypts on. */
  public boolean isHive() {
    return isHive(catalog);
  }

  /** Whether a catalog is Hive's. */
  public static boolean isHive(Catalog catalog) {
    return isA(catalog, CatalogUtil.ICEBERG_CATALOG_HIVE);
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

  private boolean keepsPointerOnly() {
    return catalog instanceof JdbcCatalog
        || isHadoop()
        || isA(catalog, CatalogUtil.ICEBERG_CATALOG_GLUE)
        || hasBranches();
  }

  /**
   * Whether the metadata of encrypted tables is authenticated: where the catalog keeps no more than
   * a pointer to metadata.json.
   *
   * @throws InvalidConfigurationException when that is wanted of a catalog for which it is not made
   */
  public boolean authenticatesMetadata(CatalogSettings settings) {
    boolean pointerOnly = keepsPointerOnly();
    boolean wanted = settings.authenticatesMetadata(pointerOnly);
    if (wanted && !pointerOnly) {
      throw new InvalidConfigurationException(
          String.format(
              "It has %s=require, but this is not meant for catalog class %s",
              EncryptionProperties.METADATA_AUTHENTICATION, catalog.getClass().getName()),
          "Leave the property out: it is for JDBC, Hadoop, Glue and Nessie catalogs. A Hive"
              + " metastore keeps a hash of the metadata, and a REST server writes the metadata"
              + " itself.");
    }

    return wanted;
  }

  /**
   * What vouches for the metadata of an encrypted table where this project does not, if anything.
   *
   * @param table the table's operations in this catalog
   */
  public MetadataAuthentication withoutAuthentication(TableOperations table) {
    if (isRest()) {
      return new MetadataAuthentication(
          false, "the REST server writes the metadata, and is trusted with it");
    }

    if (catalog.getClass().getName().equals(CatalogUtil.ICEBERG_CATALOG_HIVE)) {
      return table instanceof HiveTableOperations hive && !HiveHash.isKept(hive)
          ? new MetadataAuthentication(false, "the Hive metastore has no hash of it")
          : new MetadataAuthentication(
              true, "each load checks the hash that the Hive metastore has of it");
    }

    return new MetadataAuthentication(
        false,
        keepsPointerOnly()
            ? "the catalog has " + EncryptionProperties.METADATA_AUTHENTICATION + "=off"
            : "this is not done for catalog class " + catalog.getClass().getName());
  }

  /** Table properties that the catalog sets in what it loads, regardless of the metadata file. */
  public Set<String> setOnLoad() {
    // Nessie's commit, and that it is not to warn of a table whose files Iceberg may delete
    return hasBranches() ? Set.of("nessie.commit.id", "nessie.gc.no-warning") : Set.of();
  }

  /** The properties in force: those that were configured, with those that a REST server adds. */
  public Map<String, String> properties() {
    return catalog instanceof RESTCatalog rest ? rest.properties() : configured;
  }

  /**
   * Commits metadata, which may have another key id than its base. All commits go through here.
   *
   * @param tableName the table's full name
   * @param table the table's operations in this catalog
   * @param changes those that the commit makes, which signed metadata does not list
   * @throws CommitStateUnknownException when the catalog may have made the commit
   */
  public void commit(
      String tableName,
      TableOperations table,
      TableMetadata base,
      TableMetadata metadata,
      List<MetadataUpdate> changes,
      Supplier<? extends KeyManagementClient> kms) {
    if (isHive() && table instanceof HiveTableOperations) {
      HiveLocks.check((HiveCatalog) catalog, (HiveTableOperations) table, metadata);
    }

    if (isHive() && base != null && isKeyChange(base, metadata)) {
      HiveTableOperations ops = (HiveTableOperations) table;
      HiveKeyIdChange.commit((HiveCatalog) catalog, ops, ops.io(), kms.get(), base, metadata);
      refresh(tableName, ops);
    } else if (isHive() && base != null && keyId(base) != null) {
      EncryptionProperties.dataKeyLength(tableName, base.properties()); // Hive's uses it itself
      table.commit(base, metadata);
    } else {
      CommitOutcome.commit(tableName, table, base, metadata, changes);
    }
  }

  private static boolean isKeyChange(TableMetadata base, TableMetadata metadata) {
    return !Objects.equals(keyId(base), keyId(metadata))
        || IcebergVersions.KEEPS_REMOVED_KEYS_ON_HIVE && !keys(metadata).containsAll(keys(base));
  }

  private static Set<String> keys(TableMetadata metadata) {
    return metadata.encryptionKeys().stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
  }

  /** The commit was made: a failure here must not look as if it were not. */
  private static void refresh(String tableName, HiveTableOperations table) {
    try {
      table.refresh();
    } catch (RuntimeException e) {
      throw CommitOutcome.unknown("the catalog failed", e, tableName);
    }
  }

  /**
   * The same, where the base may have a data key length that no key can have. Iceberg's operations
   * of a Hive table can commit nothing then.
   *
   * @param tableName the table's full name
   * @param table the table's operations in this catalog, which must no longer be used
   */
  public void repair(
      String tableName,
      TableOperations table,
      TableMetadata base,
      TableMetadata metadata,
      List<MetadataUpdate> changes,
      Supplier<? extends KeyManagementClient> kms) {
    if (isHive() && !EncryptionProperties.hasDataKeyLength(base.properties())) {
      HiveTableOperations ops = (HiveTableOperations) table;
      try (FileIO io = newFileIO()) { // with that length, the table has none
        HiveKeyIdChange.commit((HiveCatalog) catalog, ops, io, kms.get(), base, metadata);
      }
    } else {
      commit(tableName, table, base, metadata, changes, kms);
    }
  }

  private static String keyId(TableMetadata metadata) {
    return EncryptionProperties.keyId(metadata.properties());
  }

  /** A FileIO of the class that the catalog behind would take; the caller closes it. */
  public FileIO newFileIO() {
    Map<String, String> all = properties();
    boolean onHadoop =
        catalog instanceof JdbcCatalog
            || isHadoop()
            || catalog.getClass().getName().equals(CatalogUtil.ICEBERG_CATALOG_HIVE);
    Class<? extends FileIO> usual = onHadoop ? HadoopFileIO.class : ResolvingFileIO.class;
    return CatalogUtil.loadFileIO(
        all.getOrDefault(CatalogProperties.FILE_IO_IMPL, usual.getName()), all, conf);
  }

  /**
   * Whether the catalog itself has branches and tags, as Nessie: they may need files and keys that
   * none of the tables in sight needs. There a purge deletes no file.
   */
  public boolean hasBranches() {
    return isA(catalog, CatalogUtil.ICEBERG_CATALOG_NESSIE);
  }

  /**
   * Whether files of a table may be those of another table or branch, too. On Nessie other branches
   * reach them unless the table says that they do not.
   *
   * @param gcEnabled the table's gc.enabled; null: it has none
   */
  public boolean mayShareFiles(String gcEnabled) {
    return gcEnabled == null ? hasBranches() : !Boolean.parseBoolean(gcEnabled);
  }

  /**
   * Checks that no other branch may need the files of a table. Where gc.enabled is false, as in
   * tables that Nessie itself creates, Iceberg refuses; tables that it registers have none.
   *
   * @param table its full name
   * @param properties its properties
   * @throws InvalidConfigurationException before anything is deleted
   */
  public void requireOwnFiles(String table, Map<String, String> properties) {
    if (hasBranches() && !properties.containsKey(TableProperties.GC_ENABLED)) {
      throw new InvalidConfigurationException(
              "nothing was deleted: without gc.enabled=true, other branches may need its files",
              "Keep them. Set gc.enabled=true only if no other branch, tag or older commit is to be"
                  + " read any more.")
          .inTable(table);
    }
  }

  /**
   * The table that an identifier names, on whatever branch. Nessie takes {@code table@branch#hash}
   * for it, also in quotes of its own.
   */
  public TableIdentifier withoutReference(TableIdentifier identifier) {
    return hasBranches()
        ? TableIdentifier.of(
            identifier.namespace(), identifier.name().replaceAll("^[`']|[@#].*$", ""))
        : identifier;
  }

  /** The table that is renamed. Nessie leaves out the catalog's name before a namespace. */
  public TableIdentifier renamed(TableIdentifier from) {
    String[] levels = from.namespace().levels();
    return hasBranches() && levels.length > 1 && levels[0].equalsIgnoreCase(catalog.name())
        ? TableIdentifier.of(
            Namespace.of(Arrays.copyOfRange(levels, 1, levels.length)), from.name())
        : from;
  }

  /** Whether namespaces have properties there. */
  public boolean keepsNamespaceProperties() {
    return catalog instanceof SupportsNamespaces && !isHadoop();
  }

  /** Not of the properties, which may have a password among them. */
  @Override
  public String toString() {
    return catalog.toString();
  }

  /**
   * Drops a table that was made just now, unless another client has committed to it since.
   *
   * @param made its metadata as it was made, taken then: a table's own go on with its commits
   * @return whether it dropped the table
   */
  public boolean takeBack(TableIdentifier identifier, TableMetadata made) {
    catalog.invalidateTable(identifier);
    TableMetadata now = ((HasTableOperations) catalog.loadTable(identifier)).operations().current();
    if (!Objects.equals(now.uuid(), made.uuid())
        || !Objects.equals(now.metadataFileLocation(), made.metadataFileLocation())
        || now.snapshots().size() != made.snapshots().size()) {
      return false;
    }

    try {
      return catalog.dropTable(identifier, true); // with the metadata file that the server wrote
    } catch (RuntimeException e) {
      if (!ServerRefusal.is(e, catalog) && !(e instanceof ForbiddenException)) {
        throw e; // it may be gone, and the next of this name is another's
      }

      return catalog.dropTable(identifier, false); // the server does not purge
    }
  }
}
