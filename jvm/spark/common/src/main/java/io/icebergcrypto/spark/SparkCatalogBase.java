package io.icebergcrypto.spark;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.spark.metadata.HiddenKeysTable;
import io.icebergcrypto.spark.values.ValueFunctions;
import io.icebergcrypto.spark.verify.scan.ManifestListJobs;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What the catalogs of all Spark versions share: they open the encrypting Iceberg catalog, guard
 * procedures, and take paths to tables of this project. {@code EncryptedSparkCatalog} of each
 * version adds how its Spark makes tables.
 */
abstract class SparkCatalogBase extends CatalogWithProcedures {
  private static final String REST_CATALOG_PURGE =
      "rest-catalog-purge"; // Iceberg 1.11 has no constant

  private EncryptedCatalog encrypted;
  private CaseInsensitiveStringMap options;
  private PathTables lazyByPath;

  @Override
  public EncryptedCatalog encryptedCatalog() {
    return encrypted;
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap options) {
    if (options.getBoolean(REST_CATALOG_PURGE, false)) {
      throw new InvalidConfigurationException(
          String.format(
              "Catalog %s has %s=true, and a REST server cannot purge tables whose manifests it"
                  + " cannot read",
              name, REST_CATALOG_PURGE),
          "Leave the option out: DROP TABLE ... PURGE then deletes the files from Spark.");
    }

    Artifact.check();
    ServerSettings.checkCatalog(name, options.asCaseSensitiveMap());
    Map<String, String> wrapped = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    wrapped.putAll(options.asCaseSensitiveMap());
    String type = wrapped.remove(CatalogUtil.ICEBERG_CATALOG_TYPE);
    String impl = wrapped.put(CatalogProperties.CATALOG_IMPL, EncryptedCatalog.class.getName());
    if (impl != null) {
      wrapped.put(EncryptedCatalog.CATALOG_IMPL, impl);
    }

    // Spark's own default is Hive
    if (type != null || impl == null) {
      wrapped.put(
          EncryptedCatalog.CATALOG_TYPE,
          type != null ? type : CatalogUtil.ICEBERG_CATALOG_TYPE_HIVE);
    }

    wrapped.putIfAbsent(
        KmsProperties.APPLICATION_ID,
        CallContext.applicationId(SparkSession.active().sparkContext().applicationId()));
    this.options = options;
    this.encrypted = open(name, new CaseInsensitiveStringMap(wrapped));
    return encrypted;
  }

  /** The encrypting Iceberg catalog. */
  EncryptedCatalog open(String name, CaseInsensitiveStringMap properties) {
    EncryptedCatalog opened = (EncryptedCatalog) super.buildIcebergCatalog(name, properties);
    opened.engineHidesKeys(); // see forUser
    return opened;
  }

  @Override
  public UnboundFunction loadFunction(Identifier ident) throws NoSuchFunctionException {
    return ValueFunctions.load(
        ident, isFunctionNamespace(ident.namespace()), encrypted, super::loadFunction);
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    return ValueFunctions.list(
        super.listFunctions(namespace), isFunctionNamespace(namespace), namespace);
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return ident instanceof PathIdentifier path
        ? byPath().loadTable(PathTables.identifier(path))
        : forUser(ident, () -> super.loadTable(ident));
  }

  @Override
  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return ident instanceof PathIdentifier path
        ? byPath().loadTable(PathTables.identifier(path), version)
        : forUser(ident, () -> super.loadTable(ident, version));
  }

  @Override
  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return ident instanceof PathIdentifier path
        ? byPath().loadTable(PathTables.identifier(path), timestamp)
        : forUser(ident, () -> super.loadTable(ident, timestamp));
  }

  @Override
  public boolean tableExists(Identifier ident) {
    return ident instanceof PathIdentifier path
        ? byPath().tableExists(PathTables.identifier(path))
        : super.tableExists(ident);
  }

  @Override
  public Table alterTable(Identifier ident, TableChange... changes) throws NoSuchTableException {
    return ident instanceof PathIdentifier path
        ? byPath().alterTable(PathTables.identifier(path), changes)
        : super.alterTable(ident, changes);
  }

  @Override
  public boolean dropTable(Identifier ident) {
    return ident instanceof PathIdentifier path
        ? byPath().dropTable(PathTables.identifier(path))
        : super.dropTable(ident);
  }

  @Override
  public boolean purgeTable(Identifier ident) {
    if (ident instanceof PathIdentifier path) {
      return byPath().purgeTable(PathTables.identifier(path));
    }

    // Iceberg drops first and reads the lists then, of a table that may be cached: from before
    // another client encrypted it, and without files since
    invalidateTable(ident);
    encrypted
        .context()
        .checkPurge(buildIdentifier(ident), new ManifestListJobs(SparkSession.active()));
    return super.purgeTable(ident);
  }

  /**
   * A loaded table as Spark's users get it. One that is refused is not left in Iceberg's cache of
   * tables: once its metadata is restored, it is loaded again.
   */
  private Table forUser(Identifier ident, Load load) throws NoSuchTableException {
    Table table;
    try {
      table = load.run();
    } catch (TamperedException e) {
      invalidateTable(ident);
      throw e;
    }

    return encrypted.context().settings().exposesKeyMetadata()
        ? table
        : HiddenKeysTable.hide(table);
  }

  private interface Load {
    Table run() throws NoSuchTableException;
  }

  /** The tables by their paths, which Iceberg would not take to this catalog. */
  final synchronized PathTables byPath() {
    if (lazyByPath == null) {
      this.lazyByPath = new PathTables(encrypted, name(), options);
    }

    return lazyByPath;
  }
}
