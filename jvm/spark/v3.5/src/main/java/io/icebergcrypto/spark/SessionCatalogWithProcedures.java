package io.icebergcrypto.spark;

import io.icebergcrypto.spark.call.SparkProcedure;
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
    extends SparkSessionCatalog<T> {
  /** A procedure of this project; null if it has none of this name. */
  abstract io.icebergcrypto.spark.call.Procedure ownProcedure(Identifier ident);

  /** A procedure of Iceberg's, guarded where that is needed. */
  abstract io.icebergcrypto.spark.call.Procedure guarded(
      io.icebergcrypto.spark.call.Procedure procedure);

  @Override
  public Procedure loadProcedure(Identifier ident) throws NoSuchProcedureException {
    io.icebergcrypto.spark.call.Procedure own = ownProcedure(ident);
    return SparkProcedure.of(
        own != null
            ? own
            : guarded(SparkProcedure.iceberg(ident.name(), super.loadProcedure(ident))));
  }
}
