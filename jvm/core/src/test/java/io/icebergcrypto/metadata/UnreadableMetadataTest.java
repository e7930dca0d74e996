package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.rest.responses.LoadTableResponseParser;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A file that is not a metadata file is an error at once, which names table and file. */
@ParameterizedClass
@EnumSource(names = {"HIVE", "JDBC", "HADOOP"})
class UnreadableMetadataTest extends LakeFixture {
  @Test
  void whatIsNoMetadataIsRefusedAtOnce() throws Exception {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    check(T);
  }

  /** S3 Tables, as ministack has it, answers like this. No file was cut off there. */
  @Test
  void anAnswerOfAServerIsNoFile() {
    String answer = "{\"metadata\": {\"format-version\": 3, \"location\": null}}";
    assertThatThrownBy(
            () -> CheckedLoad.checked("lake.db.t", () -> LoadTableResponseParser.fromJson(answer)))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll(
            "lake.db.t", "the catalog's server gave no table metadata", "hint:")
        .hasMessageNotContaining("cut off");
  }

  @Test
  void tablesWithoutEncryptionToo() throws Exception {
    TableIdentifier plain = TableIdentifier.of(TestLake.DB, "plain");
    catalog.buildTable(plain, new Schema(TestLake.SCHEMA.columns())).create();
    check(plain);
  }

  @Test
  void compressedMetadataToo() throws Exception {
    TestLake.createTable(catalog, "t", Map.of("write.metadata.compression-codec", "gzip"));
    check(T);
  }

  @Test
  void tablesGetTheStorageThatWasAskedFor() throws Exception {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    Table plain =
        catalog.buildTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA).create();
    assertThat(plain.io()).isInstanceOf(HadoopFileIO.class);
    assertThat(table.io()).isNotInstanceOf(FailFastFileIO.class);
    catalog.loadTable(T).refresh();
    assertThat(catalog.loadTable(T).uuid()).isEqualTo(table.uuid()); // soon again
  }

  @Test
  void storageThatFailsIsTriedAgain() throws Exception {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    FailingStorage.failures = 2;
    EncryptedCatalog other = lake.open(Map.of("io-impl", FailingStorage.class.getName()));
    if (backend == Backend.HADOOP) { // as Iceberg has it: no retry
      assertThatThrownBy(() -> other.loadTable(T)).hasStackTraceContaining("storage is away");
    } else {
      assertThat(TestLake.ids(other.loadTable(T))).containsExactly(1L);
      assertThat(other.loadTable(T).io()).isNotInstanceOf(FailFastFileIO.class);
      assertThat(FailingStorage.failures).isZero();
    }
  }

  /** Fails when metadata is read, a number of times. */
  public static final class FailingStorage extends HadoopFileIO {
    private static final long serialVersionUID = 1L;
    private static int failures;

    @Override
    public InputFile newInputFile(String path) {
      InputFile file = super.newInputFile(path);
      return path.endsWith(".metadata.json") ? new Failing(file) : file;
    }

    private record Failing(InputFile under) implements ForwardingInputFile {
      @Override
      public SeekableInputStream newStream() {
        if (failures > 0) {
          failures--;
          throw new UncheckedIOException(new IOException("the storage is away"));
        }

        return under.newStream();
      }
    }
  }

  private void check(TableIdentifier identifier) throws IOException {
    Table open = catalog.loadTable(identifier);
    Path file = TestLake.path(TestLake.metadata(open).metadataFileLocation());
    byte[] genuine = Files.readAllBytes(file);
    for (Map.Entry<String, byte[]> bad : bad(file, genuine).entrySet()) {
      write(file, bad.getValue());
      long start = System.nanoTime();
      assertThatThrownBy(() -> lake.open(Map.of()).loadTable(identifier))
          .as(bad.getKey())
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContainingAll(identifier.toString(), "is not table metadata", "hint:")
          .hasMessageNotContaining("register");
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .as(bad.getKey())
          .isLessThan(Duration.ofSeconds(10));
    }

    write(file, newer(file, genuine));
    assertThatThrownBy(() -> lake.open(Map.of()).loadTable(identifier))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(
            identifier.toString(), "a newer Iceberg wrote its metadata", "Update Iceberg")
        .hasMessageContaining("Do not register an older metadata file");

    write(file, genuine);
    assertThat(lake.open(Map.of()).loadTable(identifier).uuid()).isEqualTo(open.uuid());
  }

  private static Map<String, byte[]> bad(Path file, byte[] genuine) throws IOException {
    Map<String, byte[]> all = new LinkedHashMap<>();
    all.put("cut off", Arrays.copyOf(genuine, genuine.length / 2));
    all.put("empty", new byte[0]);
    all.put("garbage", "PAR1 and more".getBytes(StandardCharsets.UTF_8));
    String other = "{\"format-version\": 3, \"schemas\": []}";
    all.put(
        "JSON of something else",
        file.toString().contains(".gz.") ? gzip(other) : other.getBytes(StandardCharsets.UTF_8));
    return all;
  }

  private static byte[] newer(Path file, byte[] genuine) throws IOException {
    boolean gzip = file.toString().contains(".gz.");
    try (InputStream in =
        gzip
            ? new GZIPInputStream(new ByteArrayInputStream(genuine))
            : new ByteArrayInputStream(genuine)) {
      String json =
          new String(in.readAllBytes(), StandardCharsets.UTF_8)
              .replaceFirst("\"format-version\" ?: ?\\d", "\"format-version\":99");
      return gzip ? gzip(json) : json.getBytes(StandardCharsets.UTF_8);
    }
  }

  private static byte[] gzip(String text) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }

    return bytes.toByteArray();
  }

  private static void write(Path file, byte[] bytes) throws IOException {
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    Files.write(file, bytes);
  }
}
