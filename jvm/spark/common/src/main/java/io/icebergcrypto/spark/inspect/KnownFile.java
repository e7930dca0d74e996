package io.icebergcrypto.spark.inspect;

import io.icebergcrypto.audit.FileKind;
import java.nio.ByteBuffer;

/**
 * One file as a table knows it, with its key: secret.
 *
 * @param kind what it is to the table
 * @param path its location as the table's metadata has it
 * @param format its format: parquet, avro, puffin
 * @param length its length in bytes as the metadata says; -1: it does not say
 * @param keyMetadata its key metadata, decrypted; null: the table has no key for it
 */
record KnownFile(FileKind kind, String path, String format, long length, ByteBuffer keyMetadata) {
  @Override
  public String toString() {
    return path;
  }
}
