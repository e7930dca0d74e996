package io.icebergcrypto.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionStatistics;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.PartitionStatsHandler;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Statistics files, encrypted; each read by a catalog opened for it. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST"})
class StatisticsTest extends LakeFixture {
  private static final String SKETCH = "MARKER-sketch";

  @Override
  protected Map<String, String> properties() {
    return Map.of("encryption.statistics", "encrypt");
  }

  @AfterEach
  void purge() {
    if (catalog == null) {
      return; // left to the night
    }

    catalog.listTables(TestLake.DB).forEach(table -> catalog.dropTable(table, true));
  }

  private Table create() {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    return table;
  }

  private Table reopened(String policy) throws IOException {
    return lake.open(Map.of("encryption.statistics", policy)).loadTable(T);
  }

  private static long keyEntries(Table table) {
    return TestLake.metadata(table).encryptionKeys().stream()
        .filter(key -> key.properties().containsKey("statistics-path"))
        .count();
  }

  private static StatisticsFile write(Table table) {
    return TestLake.statistics(table, table.currentSnapshot().snapshotId(), SKETCH);
  }

  private static String read(Table table) throws IOException {
    String path = Iterables.getOnlyElement(table.statisticsFiles()).path();
    try (PuffinReader reader = Puffin.read(table.io().newInputFile(path)).build()) {
      ByteBuffer bytes =
          Iterables.getOnlyElement(reader.readAll(reader.fileMetadata().blobs())).second();
      return StandardCharsets.UTF_8.decode(bytes).toString();
    }
  }

  @Test
  void aStatisticsFileIsEncryptedAndRead() throws IOException {
    Table table = create();
    StatisticsFile file = write(table);
    table.updateStatistics().setStatistics(file).commit();
    Path stored = TestLake.path(file.path());
    assertThat(TestLake.magic(stored)).isEqualTo(FileMagic.AGS1);
    assertThat(new String(Files.readAllBytes(stored), StandardCharsets.ISO_8859_1))
        .doesNotContain(SKETCH);
    assertThat(file.fileSizeInBytes()).isEqualTo(Files.size(stored));
    assertThat(keyEntries(table)).isEqualTo(1);
    for (String policy : List.of("refuse", "plaintext", "encrypt")) {
      assertThat(read(reopened(policy))).as(policy).isEqualTo(SKETCH);
    }
    Map<String, String> allow =
        Map.of("encryption.plaintext-files", "allow", "encryption.statistics", "refuse");
    assertThat(read(lake.open(allow).loadTable(T))).isEqualTo(SKETCH);
  }

  @Test
  void removedStatisticsTakeTheirKeyAlong() throws IOException {
    Table table = create();
    StatisticsFile file = write(table);
    table.updateStatistics().setStatistics(file).commit();
    table.updateStatistics().removeStatistics(file.snapshotId()).commit();
    assertThat(keyEntries(reopened("encrypt"))).isZero();

    table.updateStatistics().setStatistics(file).commit();
    assertThat(read(reopened("encrypt"))).isEqualTo(SKETCH);
    TestLake.append(table, 2);
    table.expireSnapshots().expireSnapshotId(file.snapshotId()).commit();
    assertThat(keyEntries(reopened("encrypt"))).isZero();
    assertThat(TestLake.path(file.path())).doesNotExist();
  }

  @Test
  void aCommitThatLosesARaceKeepsTheKey() throws IOException {
    Table table = create();
    StatisticsFile file = write(table);
    TestLake.append(reopened("refuse"), 2);
    table.updateStatistics().setStatistics(file).commit();
    Table reopened = reopened("encrypt");
    assertThat(read(reopened)).isEqualTo(SKETCH);
    assertThat(TestLake.ids(reopened)).containsExactly(1L, 2L);
  }

  @Test
  void aTransactionThatIsAppliedAgainKeepsTheKey() throws IOException {
    Table table = create();
    Transaction transaction = table.newTransaction();
    transaction.newAppend().appendFile(TestLake.write(transaction.table(), 2)).commit();
    StatisticsFile file = write(transaction.table());
    transaction.updateStatistics().setStatistics(file).commit();
    assertThat(read(transaction.table())).isEqualTo(SKETCH);
    TestLake.append(reopened("refuse"), 3);
    transaction.commitTransaction();
    Table reopened = reopened("encrypt");
    assertThat(read(reopened)).isEqualTo(SKETCH);
    assertThat(TestLake.ids(reopened)).containsExactly(1L, 2L, 3L);
  }

  @Test
  void aStatisticsFileWithoutAKeyIsRefused() throws IOException {
    Table table = create();
    StatisticsFile ofAnother = write(reopened("encrypt")); // whose key is there only
    StatisticsFile plaintext = write(reopened("plaintext"));
    assertThat(TestLake.magic(TestLake.path(plaintext.path()))).isEqualTo(FileMagic.PUFFIN);
    for (StatisticsFile file : List.of(ofAnother, plaintext)) {
      assertThatThrownBy(() -> table.updateStatistics().setStatistics(file).commit())
          .isInstanceOf(PlaintextException.class)
          .hasMessageContainingAll("lake.db.t", file.path(), "encryption.statistics=encrypt")
          .hasMessageContainingAll("stays in the storage", "holds nothing but statistics");
      assertThat(TestLake.path(file.path())).as("a check deletes nothing").exists();
    }
  }

  @Test
  void anEntryThatNamesADataFileDeletesNothing() throws IOException {
    Table table = create();
    for (String live : liveFiles(table)) {
      StatisticsFile ofTable = entry(table, live);
      PartitionStatisticsFile ofPartitions = new OfPath(ofTable.snapshotId(), live);
      assertThatThrownBy(() -> table.updateStatistics().setStatistics(ofTable).commit())
          .isInstanceOf(PlaintextException.class)
          .hasMessageContainingAll("lake.db.t", live);
      assertThatThrownBy(
              () -> table.updatePartitionStatistics().setPartitionStatistics(ofPartitions).commit())
          .isInstanceOf(PlaintextException.class)
          .hasMessageContainingAll("lake.db.t", live);
      assertThat(TestLake.path(live)).exists();
    }

    assertThat(TestLake.ids(reopened("encrypt"))).containsExactly(1L);
  }

  /** A client may have set the entry that does not look at it. */
  @Test
  void anExpiredEntryThatNamesALiveFileDeletesNothing() throws IOException {
    Table table = create();
    List<String> live = liveFiles(table);
    for (String path : live) {
      long snapshot = table.currentSnapshot().snapshotId();
      Table careless = reopened("plaintext");
      careless.updateStatistics().setStatistics(entry(table, path)).commit();
      careless
          .updatePartitionStatistics()
          .setPartitionStatistics(new OfPath(snapshot, path))
          .commit();
      TestLake.append(careless, 2);
      table.refresh();
      table.expireSnapshots().expireSnapshotId(snapshot).commit();
      assertThat(table.statisticsFiles()).isEmpty();
      assertThat(TestLake.path(path)).exists();
    }
  }

  /** A data file and a manifest that every later snapshot has, too. */
  private static List<String> liveFiles(Table table) throws IOException {
    ManifestFile manifest =
        Iterables.getOnlyElement(table.currentSnapshot().allManifests(table.io()));
    try (CloseableIterable<String> data =
        ManifestFiles.readPaths(manifest, table.io(), table.specs())) {
      return List.of(Iterables.getOnlyElement(data), manifest.path());
    }
  }

  private static StatisticsFile entry(Table table, String path) {
    long snapshot = table.currentSnapshot().snapshotId();
    return new GenericStatisticsFile(snapshot, path, 100, 10, List.of());
  }

  private record OfPath(long snapshotId, String path) implements PartitionStatisticsFile {
    @Override
    public long fileSizeInBytes() {
      return 100;
    }
  }

  @Test
  void refuseWritesNoFile() throws IOException {
    create();
    Table table = reopened("refuse");
    List<Path> before = TestLake.files(table);
    assertThatThrownBy(() -> write(table))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", ".stats", "encryption.statistics=encrypt");
    assertThat(TestLake.files(table)).containsExactlyInAnyOrderElementsOf(before);
  }

  @Test
  void plaintextStatisticsAreReadOnlyWherePlaintextIsAllowed() throws IOException {
    create();
    Table plaintext = reopened("plaintext");
    StatisticsFile file = write(plaintext);
    plaintext.updateStatistics().setStatistics(file).commit();
    assertThat(read(reopened("plaintext"))).isEqualTo(SKETCH);
    for (String policy : List.of("refuse", "encrypt")) {
      assertThatThrownBy(() -> read(reopened(policy)))
          .isInstanceOf(PlaintextException.class)
          .hasMessageContainingAll("lake.db.t", file.path());
    }
    assertThatThrownBy(() -> reopened("encrypt").updateStatistics().setStatistics(file).commit())
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("removeStatistics");
    assertThat(TestLake.path(file.path())).exists();
  }

  @Test
  void aStatisticsFileThatWasChangedIsRefused() throws IOException {
    Table table = create();
    StatisticsFile file = write(table);
    table.updateStatistics().setStatistics(file).commit();
    Path stored = TestLake.path(file.path());
    byte[] good = Files.readAllBytes(stored);
    byte[] flipped = good.clone();
    flipped[good.length - 20] ^= 1;
    List<byte[]> bad =
        List.of(
            Arrays.copyOf(good, good.length - 1),
            Arrays.copyOf(good, 8),
            new byte[0],
            Arrays.copyOf(good, good.length + 1),
            flipped,
            "PFA1 and so on: in plaintext".getBytes(StandardCharsets.UTF_8));
    for (byte[] bytes : bad) {
      Files.deleteIfExists(stored.resolveSibling("." + stored.getFileName() + ".crc"));
      Files.write(stored, bytes);
      assertThatThrownBy(() -> read(reopened("encrypt")))
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll("lake.db.t", file.path());
    }
  }

  @Test
  void executorsWriteAndReadNone() throws Exception {
    Table table = create();
    StatisticsFile file = write(table);
    table.updateStatistics().setStatistics(file).commit();
    byte[] bytes = SerializationUtil.serializeToBytes(SerializableTable.copyOf(table));
    Table there = SerializationUtil.deserializeFromBytes(bytes);
    FileIO io = there.io();
    assertThatThrownBy(() -> io.newInputFile(file.path()))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", file.path(), "is opened on an executor");
    assertThatThrownBy(() -> io.newOutputFile(file.path() + ".stats"))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("is opened on an executor");
  }

  @Test
  void partitionStatisticsAreEncryptedAndUsedForTheNext() throws IOException {
    PartitionSpec spec = PartitionSpec.builderFor(TestLake.SCHEMA).identity("data").build();
    for (String format : List.of("parquet", "avro")) {
      TableIdentifier name = TableIdentifier.of(TestLake.DB, format);
      Table table =
          catalog
              .buildTable(name, TestLake.SCHEMA)
              .withPartitionSpec(spec)
              .withProperty("encryption.key-id", "k1")
              .withProperty("write.format.default", format)
              .withProperty("write.parquet.compression-codec", "uncompressed")
              .withProperty("write.avro.compression-codec", "uncompressed")
              .create();
      append(table, "MARKER-a", 3);
      PartitionStatisticsFile first = compute(table);
      append(table, "MARKER-b", 2);
      assertThat(counts(catalog.loadTable(name), first.snapshotId()))
          .isEqualTo(Map.of("MARKER-a", 3L));
      PartitionStatisticsFile second = compute(table);
      assertThat(counts(catalog.loadTable(name), second.snapshotId()))
          .isEqualTo(Map.of("MARKER-a", 3L, "MARKER-b", 2L));
      assertThat(keyEntries(catalog.loadTable(name))).isEqualTo(2);
      for (PartitionStatisticsFile file : List.of(first, second)) {
        Path stored = TestLake.path(file.path());
        assertThat(TestLake.magic(stored)).isEqualTo(FileMagic.AGS1);
        assertThat(file.fileSizeInBytes()).isEqualTo(Files.size(stored));
        assertThat(new String(Files.readAllBytes(stored), StandardCharsets.ISO_8859_1))
            .doesNotContain("MARKER");
      }

      table.expireSnapshots().expireSnapshotId(first.snapshotId()).commit();
      assertThat(keyEntries(catalog.loadTable(name))).isEqualTo(1);
      assertThat(TestLake.path(first.path())).doesNotExist();

      Path cut = TestLake.path(second.path());
      Files.write(cut, Arrays.copyOf(Files.readAllBytes(cut), 50));
      Files.deleteIfExists(cut.resolveSibling("." + cut.getFileName() + ".crc"));
      assertThatThrownBy(() -> counts(catalog.loadTable(name), second.snapshotId()))
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll("lake.db." + format, second.path());
      append(table, "MARKER-c", 1); // Iceberg counts again, from the manifests
      PartitionStatisticsFile third = compute(table);
      assertThat(counts(catalog.loadTable(name), third.snapshotId()))
          .isEqualTo(Map.of("MARKER-a", 3L, "MARKER-b", 2L, "MARKER-c", 1L));
      catalog.dropTable(name, true);
      assertThat(TestLake.path(third.path())).doesNotExist();
    }
  }

  /** Shown by an old file that counts too much: the new one then does, too. */
  @Test
  void partitionStatisticsAreComputedFromOldOnes() throws IOException {
    Table table =
        catalog
            .buildTable(T, TestLake.SCHEMA)
            .withPartitionSpec(PartitionSpec.builderFor(TestLake.SCHEMA).identity("data").build())
            .withProperty("encryption.key-id", "k1")
            .create();
    append(table, "a", 3);
    PartitionStatisticsFile first = compute(table);
    append(table, "b", 2);
    PartitionStatisticsFile second = compute(table);
    table
        .updatePartitionStatistics()
        .removePartitionStatistics(second.snapshotId())
        .setPartitionStatistics(new OfSnapshot(first.snapshotId(), second))
        .commit();
    Table reopened = reopened("encrypt");
    long snapshot = compute(reopened).snapshotId();
    assertThat(counts(reopened, snapshot)).isEqualTo(Map.of("a", 3L, "b", 4L));
  }

  private record OfSnapshot(long snapshotId, PartitionStatisticsFile file)
      implements PartitionStatisticsFile {
    @Override
    public String path() {
      return file.path();
    }

    @Override
    public long fileSizeInBytes() {
      return file.fileSizeInBytes();
    }
  }

  private static PartitionStatisticsFile compute(Table table) throws IOException {
    PartitionStatisticsFile file = PartitionStatsHandler.computeAndWriteStatsFile(table);
    table.updatePartitionStatistics().setPartitionStatistics(file).commit();
    return file;
  }

  private static Map<String, Long> counts(Table table, long snapshot) throws IOException {
    Map<String, Long> counts = new TreeMap<>();
    try (CloseableIterable<PartitionStatistics> rows =
        table.newPartitionStatisticsScan().useSnapshot(snapshot).scan()) {
      rows.forEach(row -> counts.put(row.partition().get(0, String.class), row.dataRecordCount()));
    }
    return counts;
  }

  private static void append(Table table, String data, int rows) {
    GenericRecord row = GenericRecord.create(TestLake.SCHEMA);
    row.setField("id", 1L);
    row.setField("data", data);
    PartitionKey partition = new PartitionKey(table.spec(), table.schema());
    partition.partition(row);
    DataWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .build()
            .newDataWriter(
                OutputFileFactory.builderFor(table, 1, System.nanoTime())
                    .build()
                    .newOutputFile(table.spec(), partition),
                table.spec(),
                partition);
    try (writer) {
      for (int i = 0; i < rows; i++) {
        writer.write(row);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    table.newAppend().appendFile(writer.toDataFile()).commit();
  }
}
