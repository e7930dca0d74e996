package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.testing.BytesFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Files;
import org.apache.iceberg.avro.Avro;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileInspectorTest {
  @Test
  void magicOfWhatIcebergWrites() throws IOException {
    assertThat(magic(TestFiles.parquet(TestFiles.KEY, 1))).isEqualTo(FileMagic.PARE);
    assertThat(magic(TestFiles.parquet(null, 1))).isEqualTo(FileMagic.PAR1);
    assertThat(magic(TestFiles.ags1(new byte[0]))).isEqualTo(FileMagic.AGS1);

    InMemoryOutputFile avro = new InMemoryOutputFile();
    try (FileAppender<DataFile> appender =
        Avro.write(avro).schema(TestFiles.SCHEMA).named("t").overwrite().build()) {
      assertThat(appender.length()).isNotNegative();
    }
    assertThat(magic(avro.toByteArray())).isEqualTo(FileMagic.AVRO);

    InMemoryOutputFile puffin = new InMemoryOutputFile();
    try (PuffinWriter writer = Puffin.write(puffin).createdBy("test").build()) {
      writer.finish();
    }
    assertThat(magic(puffin.toByteArray())).isEqualTo(FileMagic.PUFFIN);
  }

  @Test
  void plaintextFilesHaveNoDetails() {
    for (String content :
        new String[] {"PAR1....PAR1", "Obj\u0001", "PFA1", "ORC", "{}", "?", ""}) {
      byte[] bytes = content.getBytes(StandardCharsets.ISO_8859_1);
      FileInspection inspection = FileInspector.inspect(TestFiles.input(bytes));
      assertThat(inspection.magic()).isEqualTo(magic(bytes)).isEqualTo(FileMagic.of(bytes));
      assertThat(inspection.length()).isEqualTo(bytes.length);
      assertThat(inspection.ags1()).isNull();
      assertThat(inspection.pare()).isNull();
    }
  }

  @Test
  void json() throws IOException {
    assertThat(FileInspector.inspect(TestFiles.input(new byte[0])).toJson())
        .isEqualTo(
            "{\"path\":\"s3://bucket/db/t/file\",\"length\":0,\"magic\":\"EMPTY\","
                + "\"format\":\"empty\",\"encrypted\":false}");
    assertThat(FileInspector.inspect(TestFiles.input(TestFiles.ags1(new byte[10]))).toJson())
        .isEqualTo(
            "{\"path\":\"s3://bucket/db/t/file\",\"length\":46,\"magic\":\"AGS1\","
                + "\"format\":\"aes-gcm-stream\",\"encrypted\":true,\"block_size\":1048576,"
                + "\"block_count\":1,\"plaintext_length\":10}");
    byte[] footer =
        TestFiles.footer(TestFiles.cryptoMetaData(true, null, new byte[8], true, null), 50);
    byte[] pare = TestFiles.pare(footer);
    assertThat(FileInspector.inspect(TestFiles.input(pare)).toJson())
        .isEqualTo(
            String.format(
                "{\"path\":\"s3://bucket/db/t/file\",\"length\":%d,\"magic\":\"PARE\","
                    + "\"format\":\"parquet\",\"encrypted\":true,"
                    + "\"algorithm\":\"AES_GCM_CTR_V1\",\"footer_length\":%d,"
                    + "\"aad_prefix_supplied\":true,\"aad_prefix_stored\":false,"
                    + "\"aad_file_unique_length\":8}",
                pare.length, footer.length));
  }

  @Test
  void filesOnDisk(@TempDir Path folder) throws IOException {
    Path path = folder.resolve("data.bin");
    java.nio.file.Files.write(path, TestFiles.ags1(new byte[3]));
    InputFile file = Files.localInput(path.toFile());
    assertThat(FileInspector.magic(file)).isEqualTo(FileMagic.AGS1);
    assertThat(FileInspector.inspect(file).ags1().plaintextLength()).isEqualTo(3);
  }

  @Test
  void missingFileStaysIcebergsError(@TempDir Path folder) {
    InputFile missing = Files.localInput(folder.resolve("none").toFile());
    assertThatThrownBy(() -> FileInspector.magic(missing)).isInstanceOf(NotFoundException.class);
    assertThatThrownBy(() -> FileInspector.inspect(missing)).isInstanceOf(NotFoundException.class);
  }

  @Test
  void fileShorterThanItsStorageSays() throws IOException {
    for (byte[] bytes : new byte[][] {TestFiles.parquet(TestFiles.KEY, 1), {'A', 'G'}, {}}) {
      CountingInputFile file = new CountingInputFile(bytes, bytes.length + 20);
      assertThatThrownBy(() -> FileInspector.inspect(file))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContaining(
              "s3://bucket/db/t/file could not be read: its storage ended the read")
          .hasMessageContaining("gives its length as " + (bytes.length + 20));
      assertThat(file.allClosed()).isTrue();
    }
  }

  @Test
  void onlyAFewBytesAreRead() throws IOException {
    byte[] large = TestFiles.parquet(TestFiles.KEY, 200_000);
    assertThat(large.length).isGreaterThan(500_000);
    CountingInputFile file = new CountingInputFile(large);
    FileInspector.magic(file);
    assertThat(file.bytesRead()).isEqualTo(64);
    FileInspector.inspect(file);
    assertThat(file.bytesRead()).isLessThanOrEqualTo(64 + 64 + 8 + 4096);
    assertThat(file.allClosed()).isTrue();
  }

  @Test
  void emptyObjectWhoseReadFails() {
    InputFile empty = failing(0, new IllegalStateException("416"));
    assertThat(FileInspector.magic(empty)).isEqualTo(FileMagic.EMPTY);
    assertThat(FileInspector.inspect(empty).magic()).isEqualTo(FileMagic.EMPTY);
    InputFile other = failing(100, new IllegalStateException("500"));
    assertThatThrownBy(() -> FileInspector.magic(other)).hasMessage("500");
  }

  @Test
  void storageErrorNamesTheFile() {
    InputFile file = failing(100, new IOException("connection reset"));
    assertThatThrownBy(() -> FileInspector.magic(file))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("Cannot read s3://bucket/db/t/file: connection reset")
        .hasRootCauseInstanceOf(IOException.class);
    assertThatThrownBy(() -> FileInspector.inspect(file))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("s3://bucket/db/t/file");
  }

  private static FileMagic magic(byte[] bytes) {
    return FileInspector.magic(TestFiles.input(bytes));
  }

  /** A file of which nothing can be read. */
  private static InputFile failing(long length, Exception error) {
    return new BytesFile(new byte[0], length) {
      @Override
      public SeekableInputStream newStream() {
        return new Stream() {
          @Override
          public int read(byte[] target, int offset, int count) throws IOException {
            if (error instanceof IOException e) {
              throw e;
            }

            throw (RuntimeException) error; // S3's stream sends its request even to read nothing
          }
        };
      }
    };
  }
}
