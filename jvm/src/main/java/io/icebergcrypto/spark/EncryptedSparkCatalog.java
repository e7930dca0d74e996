package io.icebergcrypto.spark;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.iceberg.spark.SparkCatalogProperties;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's SparkCatalog with encryption: swap the class and keep every option.
 *
 * <pre>
 * spark.sql.catalog.lake                                     io.icebergcrypto.spark.EncryptedSparkCatalog
 * spark.sql.catalog.lake.type                                hive | rest | jdbc | hadoop | glue | nessie
 * spark.sql.catalog.lake.encryption.kms-type                 keystore
 * spark.sql.catalog.lake.encryption.kms.keystore.path        /etc/spark/keys.p12
 * spark.sql.catalog.lake.encryption.kms.keystore.password-env KEYSTORE_PASSWORD
 * </pre>
 */
// Spark's newer forms of create and stage end in the deprecated ones, which Iceberg implements
@SuppressWarnings("deprecation")
public class EncryptedSparkCatalog extends SparkCatalog {
  private EncryptedCatalog encrypted;

  /** Spark makes one by this constructor and then initializes it. */
  public EncryptedSparkCatalog() {}

  /** The encrypting Iceberg catalog, without Spark's table cache in front. */
  public EncryptedCatalog encryptedCatalog() {
    return encrypted;
  }

  @Override
  protected Catalog buildIcebergCatalog(String name, CaseInsensitiveStringMap options) {
    if (options.getBoolean(SparkCatalogProperties.REST_CATALOG_PURGE, false)) {
      throw new InvalidConfigurationException(
          String.format(
              "Catalog %s has %s=true, and a REST server cannot purge tables whose manifests it"
                  + " cannot read",
              name, SparkCatalogProperties.REST_CATALOG_PURGE),
          "Leave the option out: DROP TABLE ... PURGE then deletes the files from Spark.");
    }

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

    this.encrypted =
        (EncryptedCatalog) super.buildIcebergCatalog(name, new CaseInsensitiveStringMap(wrapped));
    return encrypted;
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier ident) {
    return GuardedProcedure.load(ident, super::loadProcedure, this, encrypted);
  }

  @Override
  public Table loadTable(Identifier ident) throws NoSuchTableException {
    return forUser(ident, super.loadTable(ident));
  }

  @Override
  public Table loadTable(Identifier ident, String version) throws NoSuchTableException {
    return forUser(ident, super.loadTable(ident, version));
  }

  @Override
  public Table loadTable(Identifier ident, long timestamp) throws NoSuchTableException {
    return forUser(ident, super.loadTable(ident, timestamp));
  }

  @Override
  public Table createTable(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties)
      throws TableAlreadyExistsException {
    checkCreate(ident, properties);
    return super.createTable(ident, schema, transforms, properties);
  }

  @Override
  public StagedTable stageCreate(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException {
    try {
      return super.stageCreate(ident, info);
    } catch (NotSupportedException e) {
      return UnstagedTable.create(this, ident, info, e);
    }
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info) {
    try {
      return super.stageCreateOrReplace(ident, info);
    } catch (NotSupportedException e) {
      return UnstagedTable.createOrReplace(this, ident, info, e);
    }
  }

  @Override
  public StagedTable stageCreate(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties)
      throws TableAlreadyExistsException {
    checkCreate(ident, properties);
    return super.stageCreate(ident, schema, transforms, properties);
  }

  @Override
  public StagedTable stageReplace(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties)
      throws NoSuchTableException {
    checkCreate(ident, properties);
    return super.stageReplace(ident, schema, transforms, properties);
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties) {
    checkCreate(ident, properties);
    return super.stageCreateOrReplace(ident, schema, transforms, properties);
  }

  @Override
  public boolean purgeTable(Identifier ident) {
    if (!(ident instanceof PathIdentifier)) {
      encrypted.checkPurge(buildIdentifier(ident)); // Iceberg drops first and reads the lists then
    }

    return super.purgeTable(ident);
  }

  /** A loaded table as Spark's users get it. */
  private Table forUser(Identifier ident, Table table) {
    Table checked = checkPath(ident, table);
    return encrypted.exposesKeyMetadata() ? checked : MetadataTableWithoutKeys.hide(checked);
  }

  /** Iceberg loads a table by its path past every catalog: it would write plaintext. */
  private static Table checkPath(Identifier ident, Table table) {
    if (ident instanceof PathIdentifier path
        && table.properties().containsKey(TableProperties.ENCRYPTION_TABLE_KEY)) {
      throw pathRefused(path);
    }

    return table;
  }

  private void checkCreate(Identifier ident, Map<String, String> properties) {
    if (ident instanceof PathIdentifier path && encrypted.encryptsNewTable(properties)) {
      throw pathRefused(path);
    }
  }

  private static NotSupportedException pathRefused(PathIdentifier path) {
    return new NotSupportedException(
        String.format(
            "Table at path %s is encrypted and cannot be used by its path", path.location()),
        "Use its name in the catalog: a path leads past the catalog and its keys.");
  }
}
