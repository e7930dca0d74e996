package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Map;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ColumnEncryptionProperties;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ParquetCipher;
import org.apache.iceberg.shaded.org.apache.parquet.example.data.Group;
import org.apache.iceberg.shaded.org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetWriter;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.metadata.ColumnPath;
import org.apache.iceberg.shaded.org.apache.parquet.io.LocalOutputFile;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageType;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageTypeParser;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Encrypted Parquet that Iceberg does not write: of other writers, or in other ways. */
class OtherParquetTest {
  /** Those of tests/vectors. */
  private static final byte[] KEY = HexFormat.of().parseHex("000102030405060708090a0b0c0d0e0f");

  private static final byte[] PREFIX = HexFormat.of().parseHex("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf");
  private static final ColumnPath ID = ColumnPath.get("id");
  private static final MessageType SCHEMA =
      MessageTypeParser.parseMessageType("message m { required int64 id; required int64 other; }");

  @TempDir private Path folder;

  /** Of Arrow's C++ implementation; tests/vectors/README.md. It encrypts levels of version 2. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void filesOfArrow(int pageVersion) throws IOException {
    Path vectors = Path.of(System.getProperty("iceberg.crypto.root"), "tests", "vectors");
    byte[] bytes =
        Files.readAllBytes(vectors.resolve("pyarrow-pages-v" + pageVersion + ".parquet"));
    EncryptedFile file = new EncryptedFile("parquet", bytes, new Keys(KEY, PREFIX));

    assertThat(file.check(Depth.DEEP))
        .isEqualTo(new FileResult(FileMagic.PARE, bytes.length, bytes.length, null));
    for (ParquetMap.Module module : ParquetMap.of(file, folder)) {
      long middle = module.start() + module.length() / 2;
      assertThat(file.flipped(middle).check(Depth.DEEP).words())
          .startsWith(module.name() + " fails authentication with the file's key");
    }
  }

  @Test
  void noRows() throws IOException {
    assertThat(write(0, withPrefix()).check(Depth.DEEP).words()).isNull();
    assertThat(write(5, withPrefix()).check(Depth.DEEP).words()).isNull();
  }

  @Test
  void aPrefixInTheFileIsThatOfTheKeyMetadata() throws IOException {
    EncryptedFile file = write(5, properties().withAADPrefix(PREFIX));
    assertThat(file.check(Depth.DEEP).words()).isNull();
    EncryptedFile other = new EncryptedFile("parquet", file.bytes(), new Keys(KEY, new byte[] {1}));
    assertThat(other.check(Depth.DEEP).words())
        .isEqualTo("its AAD prefix is not that of its key metadata");
  }

  @Test
  void noPrefix() throws IOException {
    EncryptedFile file = write(5, properties());
    assertThat(file.check(Depth.DEEP).words())
        .isEqualTo("it says that it has no AAD prefix; its key metadata has one");
    EncryptedFile without = new EncryptedFile("parquet", file.bytes(), new Keys(KEY, null));
    assertThat(without.check(Depth.DEEP).words()).isNull();
  }

  @Test
  void pagesWithoutTags() throws IOException {
    EncryptedFile file = write(5, withPrefix().withAlgorithm(ParquetCipher.AES_GCM_CTR_V1));
    assertThat(file.check(Depth.STRUCTURE).words()).isNull();
    assertThat(file.check(Depth.DEEP).words()).contains("AES_GCM_CTR_V1, which does not authen");
  }

  @Test
  void aColumnInPlaintext() throws IOException {
    FileEncryptionProperties.Builder encryption =
        withPrefix()
            .withEncryptedColumns(Map.of(ID, ColumnEncryptionProperties.builder(ID).build()));
    FileResult checked = write(5, encryption).check(Depth.DEEP);
    assertThat(checked.words()).isEqualTo("column other in row group 0 is not encrypted");
    assertThat(checked.code()).isEqualTo(ProblemCode.PLAINTEXT);
  }

  @Test
  void aColumnWithAKeyOfItsOwn() throws IOException {
    ColumnEncryptionProperties ofId =
        ColumnEncryptionProperties.builder(ID).withKey(PREFIX).withKeyID("c").build();
    FileEncryptionProperties.Builder encryption =
        withPrefix().withEncryptedColumns(Map.of(ID, ofId));
    assertThat(write(5, encryption).check(Depth.DEEP).words())
        .isEqualTo(
            "column id in row group 0 is encrypted with a key of its own, which the table does not"
                + " have");
  }

  @Test
  void aPlaintextFooter() throws IOException {
    FileResult checked = write(5, withPrefix().withPlaintextFooter()).check(Depth.MAGIC);
    assertThat(checked.words()).isEqualTo("it is not encrypted: it starts with PAR1");
    assertThat(checked.encrypted()).isFalse();
  }

  private static FileEncryptionProperties.Builder properties() {
    return FileEncryptionProperties.builder(KEY);
  }

  private static FileEncryptionProperties.Builder withPrefix() {
    return properties().withAADPrefix(PREFIX).withoutAADPrefixStorage();
  }

  private EncryptedFile write(int rows, FileEncryptionProperties.Builder encryption)
      throws IOException {
    Path file = folder.resolve("written.parquet");
    ParquetWriter<Group> writer =
        ExampleParquetWriter.builder(new LocalOutputFile(file))
            .withType(SCHEMA)
            .withEncryption(encryption.build())
            .withWriteMode(ParquetFileWriter.Mode.OVERWRITE)
            .build();
    try (writer) {
      for (long i = 0; i < rows; i++) {
        Group row = new SimpleGroup(SCHEMA);
        row.add("id", i);
        row.add("other", -i);
        writer.write(row);
      }
    }

    return new EncryptedFile("parquet", Files.readAllBytes(file), new Keys(KEY, PREFIX));
  }
}
