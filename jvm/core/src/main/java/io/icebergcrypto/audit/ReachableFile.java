package io.icebergcrypto.audit;

/**
 * A file that a table's metadata names.
 *
 * @param kind what it is to the table
 * @param path its location
 * @param format its format as the table's metadata says: avro, puffin, parquet
 * @param length its length in bytes as the table's metadata says; -1 when it does not say
 * @param keyId the id of its entry in {@code encryption-keys}; null when it has none
 * @param older whether only older metadata files name it, so that it may be gone
 */
public record ReachableFile(
    FileKind kind, String path, String format, long length, String keyId, boolean older) {}
