package io.icebergcrypto.spark;

import io.icebergcrypto.spark.call.SparkProcedure;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.spark.sql.catalyst.analysis.NoSuchProcedureException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.iceberg.catalog.Procedure;

/** Iceberg's catalog with procedures of this project. */
abstract class CatalogWithProcedures extends SparkCatalog {
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
