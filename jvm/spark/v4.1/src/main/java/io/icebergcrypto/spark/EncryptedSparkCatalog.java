package io.icebergcrypto.spark;

import io.icebergcrypto.NotSupportedException;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;

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
// Spark 4.1 calls the forms with a TableInfo, and so do Iceberg's deprecated ones
public class EncryptedSparkCatalog extends SparkCatalogBase {
  /** Spark makes one by this constructor and then initializes it. */
  public EncryptedSparkCatalog() {}

  @Override
  public Table createTable(Identifier ident, TableInfo info) throws TableAlreadyExistsException {
    return ident instanceof PathIdentifier path
        ? byPath().createTable(PathTables.identifier(path), info)
        : super.createTable(ident, info);
  }

  @Override
  public StagedTable stageCreate(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException {
    if (ident instanceof PathIdentifier path) {
      return byPath().stageCreate(PathTables.identifier(path), info);
    }

    try {
      return super.stageCreate(ident, info);
    } catch (NotSupportedException e) {
      return UnstagedTable.create(this, ident, () -> createTable(ident, info), e);
    }
  }

  @Override
  public StagedTable stageReplace(Identifier ident, TableInfo info) throws NoSuchTableException {
    return ident instanceof PathIdentifier path
        ? byPath().stageReplace(PathTables.identifier(path), info)
        : super.stageReplace(ident, info);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info) {
    if (ident instanceof PathIdentifier path) {
      return byPath().stageCreateOrReplace(PathTables.identifier(path), info);
    }

    try {
      return super.stageCreateOrReplace(ident, info);
    } catch (NotSupportedException e) {
      return UnstagedTable.createOrReplace(this, ident, () -> createTable(ident, info), e);
    }
  }
}
