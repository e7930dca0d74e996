package io.icebergcrypto.spark;

import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.call.SparkProcedure;
import org.apache.iceberg.spark.SparkSessionCatalog;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;

/** Iceberg's session catalog with procedures of this project. */
abstract class SessionCatalogWithProcedures<
        T extends TableCatalog & FunctionCatalog & SupportsNamespaces & ViewCatalog>
    extends SparkSessionCatalog<T> {
  /** A procedure of this project; null if it has none of this name. */
  abstract Procedure ownProcedure(Identifier ident);

  /** A procedure of Iceberg's, guarded where that is needed. */
  abstract Procedure guarded(Procedure procedure);

  @Override
  public UnboundProcedure loadProcedure(Identifier ident) {
    Procedure own = ownProcedure(ident);
    return SparkProcedure.of(
        own != null ? own : guarded(SparkProcedure.iceberg(super.loadProcedure(ident))));
  }
}
