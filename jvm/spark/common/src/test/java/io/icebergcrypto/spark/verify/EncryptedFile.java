package io.icebergcrypto.spark.verify;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.testing.NoKms;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.ByteBuffers;

/** A file that Iceberg's own writers encrypted, and its key metadata. */
record EncryptedFile(String format, byte[] bytes, NativeEncryptionKeyMetadata metadata) {
  static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "name", Types.StringType.get()),
          Types.NestedField.optional(
              3, "tags", Types.ListType.ofOptional(4, Types.StringType.get())));

  /** Row groups of about 600 rows, pages of 100; dictionaries, and a bloom filter for id. */
  static final Map<String, String> MANY_PARTS =
      Map.of(
          "write.parquet.row-group-size-bytes", "4000",
          "write.parquet.row-group-check-min-record-count", "200",
          "write.parquet.row-group-check-max-record-count", "200",
          "write.parquet.page-row-limit", "100",
          "write.parquet.bloom-filter-enabled.column.id", "true",
          "write.parquet.bloom-filter-max-bytes", "1024");

  static EncryptedFile parquet(int rows, int keyLength, Map<String, String> properties)
      throws IOException {
    return parquet(rows, keyLength, properties, "");
  }

  /** Names end as given. */
  static EncryptedFile parquet(
      int rows, int keyLength, Map<String, String> properties, String nameEnd) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager(keyLength).encrypt(target);
    DataWriter<Record> writer =
        Parquet.writeData((EncryptedOutputFile) encrypted)
            .schema(SCHEMA)
            .withSpec(PartitionSpec.unpartitioned())
            .createWriterFunc((schema, type) -> GenericParquetWriter.create(schema, type))
            .setAll(properties)
            .overwrite()
            .build();
    try (writer) {
      GenericRecord row = GenericRecord.create(SCHEMA);
      for (long i = 0; i < rows; i++) {
        List<String> tags = i % 7 == 0 ? null : List.of("t" + i % 5, "u" + i % 3);
        writer.write(
            row.copy(
                "id", i * i, "name", i % 11 == 0 ? null : "n" + i % 50 + nameEnd, "tags", tags));
      }
    }

    return new EncryptedFile("parquet", target.toByteArray(), encrypted.keyMetadata());
  }

  /** An AES GCM stream. */
  static EncryptedFile stream(int plaintextLength, int keyLength) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager(keyLength).encrypt(target);
    byte[] plaintext = new byte[plaintextLength];
    for (int i = 0; i < plaintextLength; i++) {
      plaintext[i] = (byte) (i * 31 + (i >> 11));
    }

    try (PositionOutputStream out = encrypted.encryptingOutputFile().createOrOverwrite()) {
      out.write(plaintext);
    }

    return new EncryptedFile("avro", target.toByteArray(), encrypted.keyMetadata());
  }

  private static StandardEncryptionManager manager(int keyLength) {
    return new StandardEncryptionManager(List.of(), "k1", keyLength, new NoKms());
  }

  byte[] key() {
    return ByteBuffers.toByteArray(metadata.encryptionKey());
  }

  byte[] aadPrefix() {
    return ByteBuffers.toByteArray(metadata.aadPrefix());
  }

  /** Key metadata as the table has it: with the file's length. */
  ByteBuffer keyMetadata() {
    return metadata.copyWithLength(bytes.length).buffer();
  }

  EncryptedFile with(byte[] otherBytes) {
    return new EncryptedFile(format, otherBytes, metadata);
  }

  /** The file with one bit flipped. */
  EncryptedFile flipped(long at) {
    byte[] other = bytes.clone();
    other[(int) at] ^= (byte) (1 << at % 8);
    return with(other);
  }

  FileResult check(Depth depth) {
    return check(depth, bytes.length);
  }

  FileResult check(Depth depth, long expectedLength) {
    return check(depth, expectedLength, keyMetadata());
  }

  FileResult check(Depth depth, long expectedLength, ByteBuffer keyMetadata) {
    InMemoryInputFile stored = new InMemoryInputFile("s3://bucket/db/t/file", bytes);
    return new FileCheck(depth).check(FileKind.DATA, format, stored, expectedLength, keyMetadata);
  }
}
