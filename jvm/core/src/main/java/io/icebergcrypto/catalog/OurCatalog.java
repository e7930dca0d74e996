package io.icebergcrypto.catalog;

/** A catalog of an engine, such as Spark's, that is one of this project. */
public interface OurCatalog {
  /** The encrypting Iceberg catalog, without the engine's table cache in front. */
  EncryptedCatalog encryptedCatalog();
}
