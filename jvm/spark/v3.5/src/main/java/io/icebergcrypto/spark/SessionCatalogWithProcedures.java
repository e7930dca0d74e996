package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.spark.call.SparkProcedure;
import io.icebergcrypto.spark.procedures.Procedures;
import org.apache.iceberg.spark.SparkSessionCatalog;
import org.apache.spark.sql.catalyst.analysis.NoSuchProcedureException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.apache.spark.sql.connector.iceberg.catalog.Procedure;

/** Iceberg's session catalog with procedures of this project. */
abstract class SessionCatalogWithProcedures<
        T extends TableCatalog & FunctionCatalog & SupportsNamespaces & ViewCatalog>
    extends SparkSessionCatalog<T> implements EngineCatalog {
  @Override
  public Procedure loadProcedure(Identifier ident) throws NoSuchProcedureException {
    return SparkProcedure.of(
        Procedures.load(
            ident, this, () -> SparkProcedure.iceberg(ident.name(), super.loadProcedure(ident))));
  }
}
