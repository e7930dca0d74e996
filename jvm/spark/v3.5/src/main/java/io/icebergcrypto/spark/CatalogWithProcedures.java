package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.spark.call.SparkProcedure;
import io.icebergcrypto.spark.procedures.Procedures;
import org.apache.iceberg.spark.SparkCatalog;
import org.apache.spark.sql.catalyst.analysis.NoSuchProcedureException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.iceberg.catalog.Procedure;

/** Iceberg's catalog with procedures of this project. */
abstract class CatalogWithProcedures extends SparkCatalog implements EngineCatalog {
  @Override
  public Procedure loadProcedure(Identifier ident) throws NoSuchProcedureException {
    return SparkProcedure.of(
        Procedures.load(
            ident, this, () -> SparkProcedure.iceberg(ident.name(), super.loadProcedure(ident))));
  }
}
