package io.icebergcrypto.catalog;

/** An engine's catalog that has an encrypting one below it. */
public interface HasEncryptedCatalog {
  /** The encrypting Iceberg catalog, without a cache of tables in front. */
  EncryptedCatalog encryptedCatalog();
}
