package io.icebergcrypto.spark;

import io.icebergcrypto.NotSupportedException;
import java.util.Map;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

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
 *
 * <p>A table by its path ({@code format("iceberg").load("/path")}) comes to the catalog {@code
 * default_iceberg}. When that is one of this class, such tables are encrypted as all others.
 */
@SuppressWarnings("deprecation") // Spark 4.0 calls the forms with a StructType
public class EncryptedSparkCatalog extends SparkCatalogBase {
  /** Spark makes one by this constructor and then initializes it. */
  public EncryptedSparkCatalog() {}

  @Override
  public Table createTable(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties)
      throws TableAlreadyExistsException {
    return ident instanceof PathIdentifier path
        ? byPath().createTable(PathTables.identifier(path), schema, transforms, properties)
        : super.createTable(ident, schema, transforms, properties);
  }

  @Override
  public StagedTable stageCreate(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties)
      throws TableAlreadyExistsException {
    if (ident instanceof PathIdentifier path) {
      return byPath().stageCreate(PathTables.identifier(path), schema, transforms, properties);
    }

    try {
      return super.stageCreate(ident, schema, transforms, properties);
    } catch (NotSupportedException e) {
      return UnstagedTable.create(
          this, ident, () -> createTable(ident, schema, transforms, properties), e);
    }
  }

  @Override
  public StagedTable stageReplace(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties)
      throws NoSuchTableException {
    return ident instanceof PathIdentifier path
        ? byPath().stageReplace(PathTables.identifier(path), schema, transforms, properties)
        : super.stageReplace(ident, schema, transforms, properties);
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier ident, StructType schema, Transform[] transforms, Map<String, String> properties) {
    if (ident instanceof PathIdentifier path) {
      return byPath()
          .stageCreateOrReplace(PathTables.identifier(path), schema, transforms, properties);
    }

    try {
      return super.stageCreateOrReplace(ident, schema, transforms, properties);
    } catch (NotSupportedException e) {
      return UnstagedTable.createOrReplace(
          this, ident, () -> createTable(ident, schema, transforms, properties), e);
    }
  }
}
