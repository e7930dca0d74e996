package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;
import org.apache.iceberg.util.SerializationUtil;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** What an encrypting catalog adds to the catalog behind, and the traps on the way, on each. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST"})
class EncryptedCatalogTest extends LakeFixture {
  private Table create(String name) {
    return TestLake.createTable(catalog, name, Map.of());
  }

  private static void assertAllEncrypted(Table table) {
    assertThat(TestLake.files(table))
        .isNotEmpty()
        .allSatisfy(
            file -> assertThat(TestLake.magic(file).encrypted()).as(file.toString()).isTrue());
  }

  @Test
  void aKeyIdMeansFormatVersion3AndEncryptedFiles() throws IOException {
    Table table = create("t");
    assertThat(TestLake.metadata(table).formatVersion()).isEqualTo(3);
    TestLake.append(table, 1, 2, 3);
    assertAllEncrypted(table);
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(1L, 2L, 3L);
  }

  @Test
  void theStockCatalogBehindCannotReadIt() throws IOException {
    TestLake.append(create("t"), 1);
    Table stock = lake.openStock().loadTable(T);
    assertThatThrownBy(() -> TestLake.ids(stock))
        .hasMessageContaining("Cannot decrypt manifest list");
  }

  @Test
  void aTableWithoutAKeyIdIsAsTheCatalogBehindHasIt() throws IOException {
    Table table = TestLake.append(catalog.createTable(T, TestLake.SCHEMA), 1);
    assertThat(TestLake.metadata(table).formatVersion()).isEqualTo(2);
    assertThat(TestLake.files(table)).noneMatch(file -> TestLake.magic(file).encrypted());
    assertThat(TestLake.ids(lake.openStock().loadTable(T))).containsExactly(1L);
  }

  @Test
  void aPlaintextTableNeedsNoKms() throws IOException {
    Catalog withoutKms = new TestLake(backend, folder, Map.of()).open(Map.of());
    Table table = TestLake.append(withoutKms.createTable(T, TestLake.SCHEMA), 1);
    assertThat(TestLake.ids(table)).containsExactly(1L);
    assertThatThrownBy(() -> TestLake.createTable(withoutKms, "e", Map.of()))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("No KMS is configured", "lake");
  }

  @Test
  void aBadKeyIsFoundBeforeAnythingIsCreated() {
    assertThatThrownBy(
            () ->
                catalog
                    .buildTable(T, TestLake.SCHEMA)
                    .withProperty("encryption.key-id", "nope")
                    .create())
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("lake.db.t", "'nope'");
    assertThat(catalog.tableExists(T)).isFalse();
  }

  @Test
  void requiredRefusesATableWithoutAKey() throws IOException {
    Catalog required = lake.open(Map.of("encryption.required", "true"));
    assertThatThrownBy(() -> required.createTable(T, TestLake.SCHEMA))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "encryption.required");
    assertThatThrownBy(() -> required.buildTable(T, TestLake.SCHEMA).createTransaction())
        .isInstanceOf(InvalidConfigurationException.class);
    assertThat(catalog.tableExists(T)).isFalse();
  }

  @Test
  void theKeyIdStaysAsItIs() {
    Table table = create("t");
    assertThatThrownBy(() -> table.updateProperties().set("encryption.key-id", "k2").commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("cannot be changed to 'k2' by itself")
        .hasMessageContaining(
            "CALL lake.system.rotate_master_key(table => 'lake.db.t', new_key_id => 'k2')");
    assertThatThrownBy(() -> table.updateProperties().remove("encryption.key-id").commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("cannot be removed")
        .hasMessageContaining("decrypt_table(table => 'lake.db.t', confirm => true)");
    Table plain = catalog.createTable(TableIdentifier.of(TestLake.DB, "p"), TestLake.SCHEMA);
    assertThatThrownBy(() -> plain.updateProperties().set("encryption.key-id", "k1").commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("encrypt_table(table => 'lake.db.p', key_id => 'k1')");
    plain.updateProperties().set("format-version", "3").commit();
    assertThatThrownBy(() -> plain.updateProperties().set("encryption.key-id", "k1").commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("encrypt_table(table => 'lake.db.p', key_id => 'k1')");
  }

  @Test
  void aKeyIdThatAStockClientRemovedIsMissedAndCanBePutBack() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    lake.openStock().loadTable(T).updateProperties().remove("encryption.key-id").commit();
    if (backend != Backend.REST) { // it is put back by a signature: MetadataAuthenticationTest
      Path location = TestLake.path(table.location());
      Map<Path, String> files = TestLake.states(location);
      Table fresh = lake.open(Map.of()).loadTable(T);
      for (ThrowingCallable use :
          List.<ThrowingCallable>of(
              table::refresh,
              fresh::properties,
              () -> TestLake.ids(fresh),
              () -> TestLake.append(fresh, 2),
              () -> fresh.updateProperties().set("encryption.key-id", "k1").commit(),
              () -> lake.open(Map.of()).dropTable(T, true))) {
        assertThatThrownBy(use)
            .isInstanceOf(TamperedException.class)
            .hasMessageContainingAll("lake.db.t", "encryption.key-id is gone (it was 'k1')");
      }
      assertThat(TestLake.states(location)).isEqualTo(files);
      return;
    }

    table.refresh();
    for (Table loaded : List.of(table, lake.open(Map.of()).loadTable(T))) {
      int files = TestLake.files(loaded).size();
      assertThatThrownBy(() -> TestLake.append(loaded, 2))
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll("lake.db.t", "'encryption.key-id'='k1'");
      assertThatThrownBy(() -> TestLake.ids(loaded)).isInstanceOf(TamperedException.class);
      assertThat(TestLake.files(loaded)).hasSize(files);
    }

    assertThatThrownBy(() -> lake.open(Map.of()).dropTable(T, true))
        .isInstanceOf(TamperedException.class);
    Table loaded = lake.open(Map.of()).loadTable(T);
    assertThatThrownBy(() -> loaded.updateProperties().set("encryption.key-id", "k2").commit())
        .isInstanceOf(NotSupportedException.class);
    loaded.updateProperties().set("encryption.key-id", "k1").commit();
    TestLake.append(loaded, 3);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 3L);
  }

  @Test
  void aCatalogPropertyWithAValueThatIsNotUnderstoodIsRefused() {
    for (String property :
        List.of("encryption.required", "encryption.statistics", "encryption.plaintext-files")) {
      assertThatThrownBy(() -> lake.open(Map.of(property, "maybe")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake", property, "'maybe'");
    }
  }

  @Test
  void aTableThatIsDroppedInUseDeletesItsFilesAndWritesNoPlaintext() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    OutputFile written = table.io().newOutputFile(folder + "/elsewhere/offsets");
    write(written, "{}");
    lake.open(Map.of()).dropTable(T, false);
    assertThatThrownBy(table::refresh).isInstanceOf(RuntimeException.class);

    table.io().deleteFile(written.location());
    assertThat(written.toInputFile().exists()).isFalse();
    assertThatThrownBy(() -> table.encryption().encrypt(written)).isInstanceOf(Exception.class);
    assertThatThrownBy(() -> table.io().newOutputFile(folder + "/elsewhere/plain").create())
        .isInstanceOf(Exception.class);
    assertThat(folder.resolve("elsewhere/plain")).doesNotExist();
  }

  /** A catalog that does not start leaves no connection of the one behind it. */
  @Test
  void aCatalogThatDoesNotStartIsClosed() throws IOException {
    Map<String, String> wrong =
        Map.of(
            "encryption.catalog-impl", ClosedCatalog.class.getName(),
            "encryption.metadata-authentication", "maybe",
            "warehouse", folder.toString());
    Map<String, String> properties = new HashMap<>(TestKeystore.create(folder, "k1").properties());
    properties.putAll(wrong);
    ClosedCatalog.closed = false;
    try (EncryptedCatalog refused = new EncryptedCatalog()) {
      refused.setConf(new Configuration());
      assertThatThrownBy(() -> refused.initialize("lake", properties))
          .isInstanceOf(InvalidConfigurationException.class);
      assertThat(ClosedCatalog.closed).isTrue();
    }
  }

  /** Says whether it was closed. */
  public static final class ClosedCatalog extends HadoopCatalog {
    private static boolean closed;

    /** Made by Iceberg. */
    public ClosedCatalog() {}

    @Override
    public void close() throws IOException {
      super.close();
      closed = true;
    }
  }

  @Test
  void aFileThatIsNotEncryptedIsNotWritten() throws IOException {
    Table table = create("t");
    for (String content : List.of("Obj\u0001 avro", "PAR1 parquet", "PFA1 puffin", "ORC")) {
      OutputFile file = table.io().newOutputFile(table.location() + "/metadata/copy");
      assertThatThrownBy(() -> write(file, content))
          .as("by each byte, also those that a writer adds while it closes")
          .isInstanceOf(PlaintextException.class)
          .satisfies(e -> assertThat(e.getSuppressed()).isEmpty())
          .hasMessageContainingAll("lake.db.t", file.location(), "table.encryption()");
      assertThat(file.toInputFile().exists()).isFalse();
    }

    for (String content : List.of("{\"offset\": 1}", "v1", "")) { // no part of the data
      OutputFile file = table.io().newOutputFile(folder + "/offsets/" + content.length());
      write(file, content);
      assertThat(file.toInputFile().getLength()).isEqualTo(content.length());
    }

    Table allowing = lake.open(Map.of("encryption.plaintext-files", "allow")).loadTable(T);
    write(allowing.io().newOutputFile(table.location() + "/data/plain"), "PAR1 parquet");
  }

  private static void write(OutputFile file, String content) throws IOException {
    try (PositionOutputStream out = file.create()) {
      try {
        out.write(content.getBytes(StandardCharsets.ISO_8859_1));
      } catch (PlaintextException e) {
        out.write(content.getBytes(StandardCharsets.ISO_8859_1)); // as Avro's and Puffin's close
      }
      assertThat(out.getPos()).isEqualTo(content.length());
    }
  }

  @Test
  void aFileWithoutAKeyIsRefusedAtCommit() {
    Table table = create("t");
    DataFile plaintext =
        DataFiles.builder(PartitionSpec.unpartitioned())
            .withPath(table.location() + "/data/plain.parquet")
            .withFormat(FileFormat.PARQUET)
            .withFileSizeInBytes(10)
            .withRecordCount(1)
            .build();
    assertThatThrownBy(() -> table.newAppend().appendFile(plaintext).commit())
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll("lake.db.t", "plain.parquet");
    assertThat(TestLake.files(table)).as("what the refused commit wrote is gone").isEmpty();
    table.refresh();
    assertThat(table.currentSnapshot()).isNull();
  }

  @Test
  void createTransactionsEncrypt() {
    Transaction create =
        catalog
            .buildTable(T, TestLake.SCHEMA)
            .withProperty("encryption.key-id", "k1")
            .createTransaction();
    create.newAppend().appendFile(TestLake.write(create.table(), 1, 2)).commit();
    create.newAppend().appendFile(TestLake.write(create.table(), 3)).commit();
    create.commitTransaction();
    Table table = catalog.loadTable(T);
    assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L);
    assertAllEncrypted(table);

    Transaction replace = catalog.buildTable(T, TestLake.SCHEMA).createOrReplaceTransaction();
    replace.newAppend().appendFile(TestLake.write(replace.table(), 9)).commit();
    replace.commitTransaction();
    table.refresh();
    assertThat(TestLake.ids(table)).containsExactly(9L);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(9L);
    assertAllEncrypted(table);
  }

  @Test
  void aReplacementKeepsTheTablesKeyWhateverTheCatalogsDefaultIs() throws IOException {
    TestLake.createTable(
        catalog, "t", Map.of("encryption.key-id", "k2", "encryption.data-key-length", "32"));
    Catalog other =
        lake.open(
            Map.of(
                "table-default.encryption.key-id", "k1",
                "table-default.encryption.data-key-length", "16"));
    Transaction replace = other.buildTable(T, TestLake.SCHEMA).createOrReplaceTransaction();
    replace.newAppend().appendFile(TestLake.write(replace.table(), 5)).commit();
    replace.commitTransaction();
    Table table = catalog.loadTable(T);
    assertThat(table.properties())
        .containsEntry("encryption.key-id", "k2")
        .containsEntry("encryption.data-key-length", "32");
    assertThat(TestLake.ids(table)).containsExactly(5L);
    assertThatThrownBy(
            () ->
                other
                    .buildTable(T, TestLake.SCHEMA)
                    .withProperty("encryption.key-id", "k1")
                    .replaceTransaction())
        .isInstanceOf(NotSupportedException.class);
  }

  @Test
  void aTransactionThatMeetsAConflictKnowsTheOtherCommitsKeys() throws IOException {
    Table ours = TestLake.append(create("t"), 1);
    Transaction transaction = ours.newTransaction();
    transaction.newAppend().appendFile(TestLake.write(ours, 2)).commit();
    transaction.newDelete().deleteFromRowFilter(Expressions.equal("id", 1)).commit();
    TestLake.append(lake.open(Map.of()).loadTable(T), 3);
    transaction.commitTransaction();
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(2L, 3L);
    ours.refresh();
    assertThat(TestLake.ids(ours)).containsExactly(2L, 3L);
  }

  @Test
  void aFileIoTakenEarlierReadsLaterSnapshots() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    FileIO earlier = table.io();
    TestLake.append(lake.open(Map.of()).loadTable(T), 2);
    table.refresh();
    assertThat(table.currentSnapshot().allManifests(earlier)).hasSize(2);
  }

  @Test
  void aTableThatManyThreadsReadAndWriteStaysWhole() throws Exception {
    Table table = TestLake.append(create("t"), 0);
    ExecutorService threads = Executors.newFixedThreadPool(4);
    CountDownLatch written = new CountDownLatch(1);
    List<Future<?>> readers =
        IntStream.range(0, 3)
            .<Future<?>>mapToObj(
                i ->
                    threads.submit(
                        () -> {
                          while (written.getCount() > 0) {
                            for (Snapshot snapshot : table.snapshots()) {
                              snapshot.allManifests(table.io());
                            }
                            SerializationUtil.serializeToBytes(SerializableTable.copyOf(table));
                          }
                          return null;
                        }))
            .toList();
    int commits = NIGHTLY ? 30 : 12;
    for (int id = 1; id <= commits; id++) {
      TestLake.append(table, id);
    }
    written.countDown();
    for (Future<?> reader : readers) {
      reader.get();
    }
    threads.shutdown();
    assertThat(TestLake.ids(table)).hasSize(1 + commits);
  }

  @Test
  void aSerializedTableReadsAndCarriesNoSecret() throws Exception {
    Table table = TestLake.append(create("t"), 1, 2);
    byte[] bytes = SerializationUtil.serializeToBytes(SerializableTable.copyOf(table));
    assertThat(new String(bytes, StandardCharsets.ISO_8859_1))
        .contains("keys.p12")
        .doesNotContain(TestKeystore.PASSWORD);
    Table copy = SerializationUtil.deserializeFromBytes(bytes);
    Snapshot current = table.currentSnapshot();
    assertThat(current.allManifests(copy.io())).hasSize(1);
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      for (FileScanTask task : tasks) {
        assertThat(copy.io().newInputFile(task.file()).getLength()).isPositive();
      }
    }
  }

  @Test
  void expiredSnapshotsTakeTheirFilesWithThem() {
    Table table = TestLake.append(create("t"), 1);
    TestLake.append(table, 2);
    DataFile compacted = TestLake.write(table, 1, 2);
    RewriteFiles rewrite = table.newRewrite().addFile(compacted);
    table.newScan().planFiles().forEach(task -> rewrite.deleteFile(task.file()));
    rewrite.commit();
    int before = TestLake.files(table).size();
    table.expireSnapshots().expireOlderThan(Long.MAX_VALUE).retainLast(1).commit();
    assertThat(TestLake.files(table)).hasSizeLessThan(before);
    assertThat(TestLake.files(table))
        .as("what is left is what the table reaches")
        .containsExactlyInAnyOrderElementsOf(TestLake.reachable(table));
    assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
  }

  @Test
  void expiringCanLeaveFilesOrHandThemOver() {
    Table table = TestLake.append(create("t"), 1);
    table.newDelete().deleteFromRowFilter(Expressions.alwaysTrue()).commit();
    int before = TestLake.files(table).size();
    Set<String> handed = ConcurrentHashMap.newKeySet();
    table
        .expireSnapshots()
        .expireOlderThan(Long.MAX_VALUE)
        .retainLast(1)
        .deleteWith(handed::add)
        .commit();
    assertThat(TestLake.files(table)).hasSize(before);
    assertThat(handed).hasSize(3); // a data file, its manifest, its list
  }

  @Test
  void expiringWithoutTheKeyExpiresNothing() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    TestLake.append(table, 2);
    TestKeystore.existing(folder).write(256, "another");
    Table withoutKey = lake.open(Map.of()).loadTable(T);
    assertThatThrownBy(() -> withoutKey.expireSnapshots().expireOlderThan(Long.MAX_VALUE).commit())
        .isInstanceOf(KeyNotFoundException.class);
    assertThatThrownBy(
            () ->
                withoutKey
                    .newTransaction()
                    .expireSnapshots()
                    .expireOlderThan(Long.MAX_VALUE)
                    .commit())
        .isInstanceOf(KeyNotFoundException.class);
    table.refresh();
    assertThat(table.snapshots()).hasSize(2);
  }

  @Test
  void purgeDeletesTheFiles() {
    Table table = TestLake.append(create("t"), 1);
    List<Path> files = TestLake.files(table);
    assertThat(files).isNotEmpty();
    assertThat(catalog.dropTable(T, true)).isTrue();
    assertThat(files).noneMatch(Files::exists);
    assertThat(catalog.tableExists(T)).isFalse();
    assertThat(catalog.dropTable(T, true)).isFalse();
  }

  /** A Hadoop catalog gives it a folder of its own, and its files are in another. */
  @Test
  @Tag("HADOOP")
  void purgeDeletesTheFilesOfARegisteredTable() {
    assumeTrue(backend == Backend.HADOOP, "other catalogs leave it in its folder");
    Table table = TestLake.append(create("t"), 1);
    List<Path> files = TestLake.files(table);
    TableIdentifier copy = TableIdentifier.of(TestLake.DB, "copy");
    catalog.registerTable(copy, TestLake.metadata(table).metadataFileLocation());
    assertThat(catalog.dropTable(copy, true)).isTrue();
    assertThat(files).isNotEmpty().noneMatch(Files::exists);
  }

  /** Else nothing leads to it. Iceberg deletes manifests even where gc.enabled is false. */
  @Test
  @Tag("HADOOP")
  void aTableWhosePlaintextIsStillThereIsNotPurged() {
    Table table = TestLake.append(create("t"), 1);
    TableMetadata base = TestLake.metadata(table);
    Map<String, String> ofEncryptTable =
        Map.of(
            EncryptionProperties.PLAINTEXT_METADATA, "/kept.metadata.json", "gc.enabled", "false");
    ((BaseTable) table)
        .operations()
        .commit(base, TableMetadata.buildFrom(base).setProperties(ofEncryptTable).build());
    List<Path> files = TestLake.files(table);
    List<ThrowingCallable> purges =
        List.of(() -> catalog.dropTable(T, true), () -> catalog.context().checkPurge(T, null));
    for (ThrowingCallable purge : purges) {
      assertThatThrownBy(purge)
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll(
              "lake.db.t", "plaintext from before encrypt_table is still there")
          .hasMessageContaining("Call purge_plaintext")
          .satisfies(
              e -> {
                if (backend == Backend.HADOOP || backend == Backend.REST) { // a drop may delete it
                  assertThat(e).hasMessageNotContaining("without PURGE");
                } else {
                  assertThat(e).hasMessageContainingAll("without PURGE", "/kept.metadata.json");
                }
              });
    }

    assertThat(files).isNotEmpty().allMatch(Files::exists);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
    assertThat(catalog.dropTable(T, false)).as("what the hint says").isTrue();
    assertThat(catalog.tableExists(T)).isFalse();
  }

  private String onDrop() {
    return switch (backend) {
      case HADOOP -> "deletes the folder ";
      case REST -> "lets the REST server delete the files in ";
      default -> "leaves its files in ";
    };
  }

  @Test
  @Tag("HADOOP")
  void purgeWithoutTheKeyDropsNothing() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    TestKeystore.existing(folder).write(256, "another");
    EncryptedCatalog withoutKey = lake.open(Map.of());
    assertThatThrownBy(() -> withoutKey.dropTable(T, true))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("lake.db.t", "DROP TABLE without PURGE")
        .hasMessageContaining("CALL lake.system.purge_without_key(table => 'lake.db.t')")
        .hasMessageContaining(onDrop() + table.location());
    assertThatThrownBy(() -> withoutKey.context().checkPurge(T, null))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("purge_without_key");
    assertThat(catalog.tableExists(T)).isTrue();
    assertThat(TestLake.files(table)).isNotEmpty();
    assertThat(withoutKey.dropTable(T, false)).as("what the hint says").isTrue();
    assertThat(catalog.tableExists(T)).isFalse();
  }

  @Test
  void metadataTablesReadEncryptedManifests() throws IOException {
    TestLake.append(create("t"), 1);
    EncryptedCatalog exposing = lake.open(Map.of("encryption.expose-key-metadata", "true"));
    for (MetadataTableType type : MetadataTableType.values()) {
      Table metadataTable =
          exposing.loadTable(
              TableIdentifier.of(Namespace.of("db", "t"), type.name().toLowerCase(Locale.ROOT)));
      if (type != MetadataTableType.POSITION_DELETES) { // which has a scan of its own
        boolean deletes = type.name().endsWith("DELETE_FILES");
        assertThat(Iterables.size(metadataTable.newScan().planFiles()))
            .as("%s: tasks of a table with one manifest, of data files", type)
            .isEqualTo(deletes ? 0 : 1);
      }
    }
  }

  /** Where no engine of this project hides the column, as in Flink. */
  @Test
  void metadataTablesWithDataKeysAreRefused() throws IOException {
    TestLake.append(create("t"), 1);
    catalog.buildTable(TableIdentifier.of("db", "plain"), TestLake.SCHEMA).create();
    Set<String> refused = new TreeSet<>();
    for (MetadataTableType type : MetadataTableType.values()) {
      String name = type.name().toLowerCase(Locale.ROOT);
      assertThat(catalog.loadTable(TableIdentifier.of("db", "plain", name))).isNotNull();
      try {
        Table shown = catalog.loadTable(TableIdentifier.of("db", "t", name));
        assertThat(shown.schema().toString()).doesNotContain("key_metadata");
      } catch (NotSupportedException e) {
        assertThat(e)
            .hasMessageContainingAll(
                "lake.db.t." + name, "data keys", "encryption.expose-key-metadata=true");
        refused.add(name);
      }
    }

    assertThat(refused)
        .contains("files", "data_files", "delete_files", "entries", "all_entries")
        .doesNotContain("snapshots", "history", "refs", "partitions");
  }

  @Test
  void statisticsAreRefused() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    Path file = TestLake.path(table.location()).resolve("metadata/x.stats");
    Files.writeString(file, "PFA1");
    StatisticsFile statistics =
        new GenericStatisticsFile(
            table.currentSnapshot().snapshotId(), file.toString(), 4, 4, List.of());
    assertThatThrownBy(() -> table.updateStatistics().setStatistics(statistics).commit())
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("encryption.statistics");
    assertThat(file).as("no matter who wrote it").exists();
  }

  @Test
  void aCustomManagerFactoryIsUsed() throws IOException {
    CountingFactory.tables.clear();
    Catalog custom = lake.open(Map.of("encryption.manager-impl", CountingFactory.class.getName()));
    TestLake.append(TestLake.createTable(custom, "t", Map.of()), 1);
    assertThat(CountingFactory.tables).contains("lake.db.t");
    assertThatThrownBy(() -> lake.open(Map.of("encryption.manager-impl", "no.such.Factory")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("no.such.Factory");
  }

  /** Makes the default managers, and remembers for which tables. */
  public static final class CountingFactory implements EncryptionManagerFactory {
    static final Set<String> tables = ConcurrentHashMap.newKeySet();

    @Override
    public TableEncryptionManager create(
        String tableName,
        List<EncryptedKey> keys,
        String tableKeyId,
        int dataKeyLength,
        KeyManagementClient kms) {
      tables.add(tableName);
      return new TableEncryptionManager(tableName, keys, tableKeyId, dataKeyLength, kms);
    }
  }
}
