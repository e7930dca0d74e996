package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EncryptedCatalog;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** This project's catalogs among Spark's. */
public final class SparkCatalogs {
  private SparkCatalogs() {}

  /** The encrypting Iceberg catalog below one of Spark's; null: it is none of this project. */
  public static EncryptedCatalog encryptedOrNull(CatalogPlugin plugin) {
    if (plugin instanceof EncryptedSparkCatalog catalog) {
      return catalog.encryptedCatalog();
    }

    return plugin instanceof EncryptedSessionCatalog<?> catalog
        ? catalog.encryptedSparkCatalog().encryptedCatalog()
        : null;
  }
}
