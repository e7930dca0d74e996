package io.icebergcrypto.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.ViewCatalog;

/** Iceberg's session catalog, which checks each table before it is created or replaced. */
// Spark 4.1 calls the forms with a TableInfo, and so do Iceberg's deprecated ones
abstract class CheckedSessionCatalog<
        T extends TableCatalog & FunctionCatalog & SupportsNamespaces & ViewCatalog>
    extends SessionCatalogWithProcedures<T> {
  /** Checks a table that is about to be created, or to replace another. */
  abstract void checkNew(Identifier ident, Map<String, String> properties);

  @Override
  public Table createTable(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    checkNew(ident, info.properties());
    return super.createTable(ident, info);
  }

  @Override
  public StagedTable stageCreate(Identifier ident, TableInfo info)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    checkNew(ident, info.properties());
    return super.stageCreate(ident, info);
  }

  @Override
  public StagedTable stageReplace(Identifier ident, TableInfo info)
      throws NoSuchNamespaceException, NoSuchTableException {
    checkNew(ident, info.properties());
    return super.stageReplace(ident, info);
  }

  @Override
  public StagedTable stageCreateOrReplace(Identifier ident, TableInfo info)
      throws NoSuchNamespaceException {
    checkNew(ident, info.properties());
    return super.stageCreateOrReplace(ident, info);
  }
}
