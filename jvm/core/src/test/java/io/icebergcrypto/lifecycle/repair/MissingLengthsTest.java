package io.icebergcrypto.lifecycle.repair;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.audit.diagnosis.TableDiagnosis;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.LengthlessClient;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.events.Listeners;
import org.apache.iceberg.events.ScanEvent;
import org.apache.iceberg.io.CloseableIterable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Tables to which a client has appended that records no lengths of encrypted files. */
@ParameterizedClass
@EnumSource(names = {"REST", "HADOOP"})
class MissingLengthsTest extends LakeFixture {
  @Override
  protected Map<String, String> properties() {
    return Map.of("encryption.metadata-authentication", "off");
  }

  private void create(String format) throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of("write.format.default", format));
    TestLake.append(table, 1);
    LengthlessClient client =
        new LengthlessClient(lake.openStock().loadTable(T), catalog.context().kms());
    client.append(2, 3);
    client.append(4);
  }

  private EncryptedCatalog accepting() throws IOException {
    return lake.open(Map.of("encryption.files-without-length", "accept"));
  }

  @Test
  void itIsRefusedAndCalledWhatItIs() throws IOException {
    create("parquet");
    Table table = catalog.loadTable(T);

    assertThatThrownBy(() -> TestLake.ids(table))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(
            "lake.db.t",
            table.currentSnapshot().manifestListLocation(),
            "gives no length",
            "iceberg-rust",
            "encryption.files-without-length=accept",
            "repair_table");
  }

  @Test
  void itIsReadAndWrittenWhereThatIsAccepted() throws IOException {
    create("avro");
    try (EncryptedCatalog accepting = accepting()) {
      Table table = accepting.loadTable(T);
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L, 4L);
      TestLake.append(table, 5);
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L, 4L, 5L);
    }

    // this list has a length, and gives those of the manifests, which give those of the data files
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 2L, 3L, 4L, 5L);
  }

  @Test
  void repairGivesThemLengths() throws IOException {
    create("avro");
    Map<String, String> before;
    try (EncryptedCatalog accepting = accepting()) {
      before = entries(accepting.loadTable(T));
    }

    TableRepair found = TableRepair.run(catalog, T, false);
    assertThat(found.findings()).singleElement().satisfies(this::isNoLength);
    Thread here = Thread.currentThread();
    AtomicInteger plans = new AtomicInteger();
    Listeners.register(
        scan -> {
          boolean entries = scan.projection().findField("snapshot_id") != null;
          if (Thread.currentThread() == here && entries) {
            plans.incrementAndGet();
          }
        },
        ScanEvent.class);
    TableRepair done = TableRepair.run(catalog, T, true);
    assertThat(plans).as("for all manifests").hasValue(1);
    assertThat(done.findings()).singleElement().matches(Finding::repaired);
    assertThat(TableRepair.run(catalog, T, false).findings()).isEmpty();

    Table table = catalog.loadTable(T);
    assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L, 4L);
    assertThat(entries(table)).isEqualTo(before);
    assertAllHaveLengths(table);
    for (Snapshot snapshot : table.snapshots()) { // older ones, too
      assertThat(TestLake.ids(table, snapshot.snapshotId())).contains(1L);
    }

    table.expireSnapshots().expireOlderThan(System.currentTimeMillis()).commit();
    TestLake.append(table, 5);
    assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L, 4L, 5L);
  }

  /** What a commit may have put into the table stays, whatever has failed since. */
  @Test
  void aFailureAfterTheCommitDeletesNothing() throws IOException {
    create("avro");
    try (EncryptedCatalog accepting = accepting()) {
      TableOperations ops = ((BaseTable) accepting.loadTable(T)).operations();
      ForwardingOperations failing =
          new ForwardingOperations() {
            @Override
            public TableOperations below() {
              return ops;
            }

            @Override
            public void commit(TableMetadata base, TableMetadata metadata) {
              ops.commit(base, metadata);
              throw new IllegalStateException("of older metadata files");
            }
          };
      BaseTable table = new BaseTable(failing, "lake.db.t");
      assertThatThrownBy(() -> ManifestsWithLengths.rewrite(table))
          .hasMessage("of older metadata files");
      assertThat(TestLake.ids(accepting.loadTable(T))).containsExactly(1L, 2L, 3L, 4L);
    }
  }

  @Test
  void theDoctorTells() throws IOException {
    create("parquet");
    assertThat(findings()).singleElement().satisfies(MissingLengthsTest::isNoLengthOfList);
    TableRepair.run(catalog, T, true);
    assertThat(findings()).isEmpty();
  }

  private List<Finding> findings() {
    return TableDiagnosis.atAGlance(catalog, T).findings().stream()
        .filter(finding -> finding.kind() != Kind.UNAUTHENTICATED)
        .toList();
  }

  private static void isNoLengthOfList(Finding finding) {
    assertThat(finding.kind()).isEqualTo(Kind.NO_LENGTH);
    assertThat(finding.problem()).contains("manifest list", "iceberg-rust");
    assertThat(finding.hint()).contains("repair_table", "encryption.files-without-length");
  }

  private void isNoLength(Finding finding) {
    assertThat(finding.kind()).isEqualTo(Kind.NO_LENGTH);
    assertThat(finding.repairable()).isTrue();
    assertThat(finding.problem()).contains("2 of the manifests", "iceberg-rust");
  }

  /** What an entry says beside keys and lengths. */
  private static Map<String, String> entries(Table table) {
    Map<String, String> entries = new TreeMap<>();
    try (CloseableIterable<FileScanTask> tasks = table.newScan().includeColumnStats().planFiles()) {
      for (FileScanTask task : tasks) {
        DataFile file = task.file();
        entries.put(
            file.location(),
            String.format(
                "%d %d %d %d %d %s",
                file.dataSequenceNumber(),
                file.fileSequenceNumber(),
                file.firstRowId(),
                file.recordCount(),
                file.fileSizeInBytes(),
                file.lowerBounds()));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return entries;
  }

  private static void assertAllHaveLengths(Table table) throws IOException {
    StandardEncryptionManager manager = (StandardEncryptionManager) table.encryption();
    for (Snapshot snapshot : table.snapshots()) {
      assertThat(KeyedFile.decrypted(snapshot.keyId(), manager).fileLength()).isPositive();
    }

    for (ManifestFile manifest : table.currentSnapshot().allManifests(table.io())) {
      assertThat(length(manifest.keyMetadata(), manager)).isEqualTo(manifest.length());
    }

    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      for (FileScanTask task : tasks) {
        assertThat(length(task.file().keyMetadata(), manager))
            .isEqualTo(task.file().fileSizeInBytes());
      }
    }
  }

  private static Long length(ByteBuffer keyMetadata, StandardEncryptionManager manager) {
    return KeyedFile.parsed(keyMetadata, manager).fileLength();
  }
}
