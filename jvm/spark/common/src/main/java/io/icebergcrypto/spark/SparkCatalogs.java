package io.icebergcrypto.spark;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.OurCatalog;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;

/** This project's catalogs among Spark's. */
public final class SparkCatalogs {
  private SparkCatalogs() {}

  /** The encrypting Iceberg catalog below one of Spark's; null: it is none of this project. */
  public static EncryptedCatalog encryptedOrNull(CatalogPlugin plugin) {
    return plugin instanceof OurCatalog ours ? ours.encryptedCatalog() : null;
  }
}
