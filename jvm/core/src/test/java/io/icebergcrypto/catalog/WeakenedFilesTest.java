package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.CountingFileIO;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.UnaryOperator;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.FileEncryptionProperties;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ParquetCipher;
import org.apache.iceberg.shaded.org.apache.parquet.example.data.Group;
import org.apache.iceberg.shaded.org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetWriter;
import org.apache.iceberg.shaded.org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.iceberg.shaded.org.apache.parquet.io.LocalOutputFile;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageType;
import org.apache.iceberg.shaded.org.apache.parquet.schema.MessageTypeParser;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Parquet files that have a key and are not wholly encrypted, or not authenticated. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "REST", "HIVE"})
class WeakenedFilesTest extends LakeFixture {
  private static final MessageType ROWS =
      MessageTypeParser.parseMessageType(
          "message t { required int64 id = 1; optional binary data (UTF8) = 2; }");

  @Override
  protected Map<String, String> properties() {
    return backend == Backend.JDBC ? Map.of("encryption.metadata-authentication", "off") : Map.of();
  }

  /** A keyless client's ALTER TABLE. */
  private void set(String property, String value) throws IOException {
    (backend == Backend.HIVE ? lake.openStockWithKeys() : lake.openStock())
        .loadTable(T)
        .updateProperties()
        .set(property, value)
        .commit();
  }

  @ParameterizedTest
  @CsvSource({
    "write.parquet.page-version, v2",
    "write.parquet.page-version, PARQUET_2_0",
    "write.delete.parquet.page-version, v2",
    "write.parquet.page-version, v3"
  })
  void pagesWithPartsInPlaintextAreNotWritten(String property, String version)
      throws IOException, ClassNotFoundException {
    Table loadedBefore = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    DataFile writtenBefore = TestLake.write(loadedBefore, 2);
    set(property, version);
    Table table = lake.open(Map.of()).loadTable(T);
    long files = TestLake.files(table).size();
    for (Table writer : new Table[] {table, onExecutor(table)}) {
      assertThatThrownBy(() -> TestLake.write(writer, 3))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", property + "=" + version, "UNSET TBLPROPERTIES");
    }

    assertThatThrownBy(() -> loadedBefore.newAppend().appendFile(writtenBefore).commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", property + "=" + version);
    assertThat(TestLake.files(table)).as("no file of rows").hasSizeLessThanOrEqualTo((int) files);
    assertThat(TestLake.ids(table)).containsExactly(1L);

    table.updateProperties().remove(property).commit();
    TestLake.append(table, 3);
    assertThat(TestLake.ids(onExecutor(table))).containsExactly(1L, 3L);
  }

  private static Table onExecutor(Table table) {
    return SerializationUtil.deserializeFromBytes(
        SerializationUtil.serializeToBytes(SerializableTable.copyOf(table)));
  }

  /** A file of another program's Parquet writer, with the key that this catalog has made for it. */
  private DataFile write(Table table, UnaryOperator<FileEncryptionProperties.Builder> how)
      throws IOException {
    String location = table.location() + "/data/" + UUID.randomUUID() + ".parquet";
    Path path = TestLake.path(location);
    Files.createDirectories(path.getParent());
    NativeEncryptionKeyMetadata key =
        ((NativeEncryptionOutputFile)
                table.encryption().encrypt(table.io().newOutputFile(location)))
            .keyMetadata();
    FileEncryptionProperties encryption =
        how.apply(
                FileEncryptionProperties.builder(ByteBuffers.toByteArray(key.encryptionKey()))
                    .withAADPrefix(ByteBuffers.toByteArray(key.aadPrefix()))
                    .withoutAADPrefixStorage())
            .build();
    try (ParquetWriter<Group> writer =
        ExampleParquetWriter.builder(new LocalOutputFile(path))
            .withType(ROWS)
            .withEncryption(encryption)
            .build()) {
      for (long id = 0; id < 3; id++) {
        writer.write(new SimpleGroup(ROWS).append("id", id).append("data", "row"));
      }
    }

    long length = Files.size(path);
    return DataFiles.builder(table.spec())
        .withPath(location)
        .withFileSizeInBytes(length)
        .withRecordCount(3)
        .withEncryptionKeyMetadata(key.copyWithLength(length).buffer())
        .build();
  }

  private static void commit(Table table, DataFile file) {
    table.newAppend().appendFile(file).commit();
  }

  /** With storage that Parquet reads by itself, and with one whose streams are watched. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void pagesWithoutTagsAreNeitherCommittedNorRead(boolean hadoop) throws IOException {
    assertRefused(
        builder -> builder.withAlgorithm(ParquetCipher.AES_GCM_CTR_V1),
        hadoop,
        NotSupportedException.class,
        "AES_GCM_CTR_V1");
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void plaintextFootersAreNeitherCommittedNorRead(boolean hadoop) throws IOException {
    assertRefused(
        FileEncryptionProperties.Builder::withPlaintextFooter,
        hadoop,
        PlaintextException.class,
        "a footer that is not encrypted");
  }

  private void assertRefused(
      UnaryOperator<FileEncryptionProperties.Builder> how,
      boolean hadoop,
      Class<?> error,
      String words)
      throws IOException {
    Map<String, String> io = hadoop ? Map.of() : Map.of("io-impl", CountingFileIO.class.getName());
    TestLake.createTable(catalog, "t", Map.of());
    Table table = lake.open(io).loadTable(T);
    DataFile file = write(table, how);
    AppendFiles beside = table.newAppend().appendFile(TestLake.write(table, 1)).appendFile(file);
    for (AppendFiles append : new AppendFiles[] {table.newAppend().appendFile(file), beside}) {
      assertThatThrownBy(append::commit)
          .isInstanceOf(error)
          .hasMessageContainingAll("lake.db.t", file.location(), words, "hint:");
    }

    assertThat(lake.open(io).loadTable(T).currentSnapshot()).isNull();
    assertThat(TestLake.path(file.location())).as("not ours to delete").exists();

    Table allowing = lake.open(Map.of("encryption.plaintext-files", "allow")).loadTable(T);
    commit(allowing, file);
    assertThat(TestLake.ids(allowing)).containsExactly(0L, 1L, 2L);
    assertThatThrownBy(() -> TestLake.ids(lake.open(io).loadTable(T)))
        .isInstanceOf(error)
        .hasMessageContainingAll("lake.db.t", file.location(), words, "hint:");
    TestLake.append(table, 7);
    assertThatThrownBy(() -> TestLake.ids(lake.open(io).loadTable(T))).isInstanceOf(error);
  }

  @Test
  void whatAnotherWriterEncryptsWhollyIsCommittedAndRead() throws IOException {
    TestLake.createTable(catalog, "t", Map.of());
    for (String impl :
        new String[] {"org.apache.iceberg.hadoop.HadoopFileIO", CountingFileIO.class.getName()}) {
      Table table = lake.open(Map.of("io-impl", impl)).loadTable(T);
      commit(table, write(table, UnaryOperator.identity()));
      assertThat(TestLake.ids(table)).containsExactly(0L, 1L, 2L);
    }
  }

  /** That a file was as it should be once says nothing of the next time. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aFileIsLookedAtEachTimeItIsRead(boolean hadoop) throws IOException {
    Map<String, String> io = hadoop ? Map.of() : Map.of("io-impl", CountingFileIO.class.getName());
    TestLake.createTable(catalog, "t", Map.of());
    Table table = lake.open(io).loadTable(T);
    DataFile file = write(table, UnaryOperator.identity());
    commit(table, file);
    assertThat(TestLake.ids(table)).containsExactly(0L, 1L, 2L);

    Path path = TestLake.path(file.location());
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
    int algorithm = bytes.capacity() - 8 - bytes.getInt(bytes.capacity() - 8) + 1;
    Files.write(path, bytes.put(algorithm, (byte) 0x2c).array()); // AES_GCM_CTR_V1
    assertThatThrownBy(() -> TestLake.ids(table))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", file.location(), "AES_GCM_CTR_V1");
  }

  /** Each file is looked at when it is added, not when a later commit lists it again. */
  @Test
  void aCommitLooksAtTheFilesThatItAdds() throws IOException {
    TestLake.createTable(catalog, "t", Map.of("commit.manifest.min-count-to-merge", "2"));
    Table table = lake.open(Map.of("io-impl", CountingFileIO.class.getName())).loadTable(T);
    for (long id = 1; id <= 4; id++) {
      DataFile file = TestLake.write(table, id);
      CountingFileIO.reset();
      commit(table, file);
      assertThat(CountingFileIO.counts()).containsEntry("open data", 1);
    }
  }

  /** A storage takes its time for each request: one after another, thousands take minutes. */
  @Test
  void aCommitLooksAtFilesSideBySide() throws IOException {
    TestLake.createTable(catalog, "t", Map.of());
    Table table = lake.open(Map.of("io-impl", MeetingFileIO.class.getName())).loadTable(T);
    AppendFiles append = table.newAppend();
    for (long id = 1; id <= 2 * MeetingFileIO.AT_A_TIME; id++) {
      append.appendFile(TestLake.write(table, id));
    }

    append.commit();
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).hasSize(2 * MeetingFileIO.AT_A_TIME);
  }

  /** Opens a data file when so many are to be opened at the same time. */
  public static final class MeetingFileIO extends HadoopFileIO {
    private static final long serialVersionUID = 1L;
    private static final int AT_A_TIME = 4;
    private static final CyclicBarrier OTHERS = new CyclicBarrier(AT_A_TIME);

    @Override
    public InputFile newInputFile(String path, long length) {
      InputFile file = super.newInputFile(path, length);
      return path.endsWith(".parquet") ? new Meeting(file) : file;
    }

    private record Meeting(InputFile under) implements ForwardingInputFile {
      @Override
      public SeekableInputStream newStream() {
        try {
          OTHERS.await(10, TimeUnit.SECONDS);
        } catch (InterruptedException | BrokenBarrierException | TimeoutException e) {
          throw new IllegalStateException("opened by itself: " + location(), e);
        }

        return under.newStream();
      }
    }
  }
}
