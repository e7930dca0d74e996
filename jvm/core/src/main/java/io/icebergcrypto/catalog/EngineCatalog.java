package io.icebergcrypto.catalog;

/** A catalog of an engine, such as Spark's, that is one of this project. */
public interface EngineCatalog {
  /** The encrypting Iceberg catalog, without the engine's table cache in front. */
  EncryptedCatalog encryptedCatalog();

  /** The encrypting Iceberg catalog below one of an engine; null if it is not of this project. */
  static EncryptedCatalog encryptedOrNull(Object catalog) {
    return catalog instanceof EngineCatalog ours ? ours.encryptedCatalog() : null;
  }
}
