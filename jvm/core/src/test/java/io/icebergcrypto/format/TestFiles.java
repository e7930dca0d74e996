package io.icebergcrypto.format;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.encryption.AesGcmOutputFile;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.parquet.Parquet;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmCtrV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.EncryptionAlgorithm;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;
import org.apache.iceberg.types.Types;

/** Files that Iceberg itself writes, and files put together byte by byte. */
public final class TestFiles {
  static final byte[] KEY = HexFormat.of().parseHex("000102030405060708090a0b0c0d0e0f");
  static final byte[] AAD_PREFIX = HexFormat.of().parseHex("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
  static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "name", Types.StringType.get()));

  private TestFiles() {}

  static InputFile input(byte[] bytes) {
    return new InMemoryInputFile("s3://bucket/db/t/file", bytes);
  }

  static byte[] vector(String name) {
    try {
      return Files.readAllBytes(
          Path.of(System.getProperty("iceberg.crypto.root"), "tests", "vectors", name));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The bytes that the vectors' README and our own tests use. */
  public static byte[] plaintext(int length) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      bytes[i] = (byte) (i * 31 + (i >> 11));
    }
    return bytes;
  }

  /** An AES GCM stream that Iceberg wrote. */
  static byte[] ags1(byte[] plaintext) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    try (PositionOutputStream out =
        new AesGcmOutputFile(target, KEY, AAD_PREFIX).createOrOverwrite()) {
      out.write(plaintext);
    }
    return target.toByteArray();
  }

  /** A Parquet data file that Iceberg wrote, encrypted unless the key is null. */
  static byte[] parquet(byte[] key, int rows) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    Parquet.DataWriteBuilder builder =
        Parquet.writeData(target)
            .schema(SCHEMA)
            .withSpec(PartitionSpec.unpartitioned())
            .createWriterFunc((schema, type) -> GenericParquetWriter.create(schema, type))
            .overwrite();
    if (key != null) {
      builder
          .withFileEncryptionKey(ByteBuffer.wrap(key))
          .withAADPrefix(ByteBuffer.wrap(AAD_PREFIX));
    }
    try (DataWriter<Record> writer = builder.build()) {
      GenericRecord row = GenericRecord.create(SCHEMA);
      for (long i = 0; i < rows; i++) {
        writer.write(row.copy("id", i, "name", "name-" + i));
      }
    }
    return target.toByteArray();
  }

  /**
   * A file crypto metadata as Parquet's own Thrift code writes it.
   *
   * @param supply null leaves the field out, as a null array does
   */
  static byte[] cryptoMetaData(
      boolean ctr, byte[] prefix, byte[] unique, Boolean supply, byte[] keyMetadata)
      throws IOException {
    EncryptionAlgorithm algorithm = new EncryptionAlgorithm();
    if (ctr) {
      AesGcmCtrV1 settings = new AesGcmCtrV1();
      settings.setAad_prefix(prefix);
      settings.setAad_file_unique(unique);
      if (supply != null) {
        settings.setSupply_aad_prefix(supply);
      }
      algorithm.setAES_GCM_CTR_V1(settings);
    } else {
      AesGcmV1 settings = new AesGcmV1();
      settings.setAad_prefix(prefix);
      settings.setAad_file_unique(unique);
      if (supply != null) {
        settings.setSupply_aad_prefix(supply);
      }
      algorithm.setAES_GCM_V1(settings);
    }
    FileCryptoMetaData metaData = new FileCryptoMetaData(algorithm);
    metaData.setKey_metadata(keyMetadata);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    Util.writeFileCryptoMetaData(metaData, out);
    return out.toByteArray();
  }

  /** A footer: the crypto metadata and a module of nonce, that much ciphertext, and tag. */
  static byte[] footer(byte[] cryptoMetaData, int ciphertextLength) {
    int module = 12 + ciphertextLength + 16;
    return ByteBuffer.allocate(cryptoMetaData.length + 4 + module)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(cryptoMetaData)
        .putInt(module)
        .array();
  }

  /** An encrypted Parquet file of some pages and that footer. */
  static byte[] pare(byte[] footer) {
    byte[] magic = "PARE".getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(4 + 100 + footer.length + 8)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(magic)
        .put(new byte[100])
        .put(footer)
        .putInt(footer.length)
        .put(magic)
        .array();
  }
}
