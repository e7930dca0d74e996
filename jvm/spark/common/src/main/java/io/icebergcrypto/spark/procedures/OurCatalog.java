package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;

/** A catalog of Spark's that is one of this project. */
public interface OurCatalog {
  /** The encrypting Iceberg catalog, without Spark's table cache in front. */
  EncryptedCatalog encryptedCatalog();
}
