package io.icebergcrypto.spark;

import org.apache.iceberg.spark.SparkSessionCatalog;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Iceberg's SparkSessionCatalog with encryption, for {@code spark.sql.catalog.spark_catalog}:
 * Iceberg tables go through {@link EncryptedSparkCatalog}, all others to Spark's own catalog.
 *
 * @param <T> Spark's session catalog
 */
public class EncryptedSessionCatalog<
        T extends TableCatalog & FunctionCatalog & SupportsNamespaces & ViewCatalog>
    extends SparkSessionCatalog<T> {

  private EncryptedSparkCatalog iceberg;

  /** Spark makes one by this constructor and then initializes it. */
  public EncryptedSessionCatalog() {}

  /** The catalog of the Iceberg tables. */
  public EncryptedSparkCatalog encryptedSparkCatalog() {
    return iceberg;
  }

  @Override
  protected TableCatalog buildSparkCatalog(String name, CaseInsensitiveStringMap options) {
    this.iceberg = new EncryptedSparkCatalog();
    iceberg.initialize(name, options);
    return iceberg;
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier ident) {
    return GuardedProcedure.load(ident, super::loadProcedure, this, iceberg.encryptedCatalog());
  }
}
