package io.icebergcrypto.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.lifecycle.encrypt.PlaintextForm;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.io.FileIO;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A plaintext table becomes an encrypted one in one commit, or stays as it is. */
@ParameterizedClass
@EnumSource(names = {"HIVE", "REST", "HADOOP"}) // JDBC by test_encrypt_table.py
class KeyIdChangeTest extends LakeFixture {
  /** Signed metadata by test_encrypt_table.py. */
  @Override
  protected Set<Backend> byDay() {
    return EnumSet.of(Backend.HADOOP, Backend.REST);
  }

  /** The table to be: its commits stay in memory. */
  private record Staged(TableOperations below, EncryptionManager encryption)
      implements ForwardingOperations {
    @Override
    public FileIO io() {
      return EncryptingFileIO.combine(below.io(), encryption);
    }
  }

  private Staged stage(TableMetadata metadata) {
    return new Staged(
        new MetadataInMemory(((BaseTable) plain).operations(), metadata),
        new TableEncryptionManager(
            "lake.db.t",
            metadata.encryptionKeys(),
            "k1",
            16,
            new BoundKmsClient(metadata.uuid(), catalog.context().kms())));
  }

  private Table plain;

  private TableMetadata create() {
    this.plain =
        catalog
            .buildTable(T, TestLake.SCHEMA)
            .withProperty("format-version", "2")
            .withProperty("owner-team", "sales")
            .create();
    TestLake.append(plain, 0);
    TestLake.append(plain, 1);
    return base();
  }

  private TableMetadata base() {
    plain.refresh();
    return TestLake.metadata(plain);
  }

  /** The metadata of an empty encrypted table in place of the plaintext one. */
  private Staged staged(TableMetadata base) {
    TableMetadata next =
        TableMetadata.buildFrom(base)
            .upgradeFormatVersion(3)
            .setProperties(Map.of("encryption.key-id", "k1"))
            .addEncryptionKey(Kek.make("lake.db.t", base, "k1", catalog.context().kms()))
            .removeSnapshots(ids(base))
            .build();
    return stage(next);
  }

  private static List<Long> ids(TableMetadata metadata) {
    return metadata.snapshots().stream().map(Snapshot::snapshotId).toList();
  }

  private TableMetadata encrypted(TableMetadata base, long... ids) {
    Staged staged = staged(base);
    TestLake.append(new BaseTable(staged, "lake.db.t"), ids);
    return staged.current();
  }

  /** A commit beside another client's to another branch, which only on REST does not conflict. */
  private boolean isTaken(ThrowingCallable commit) {
    if (backend == Backend.REST) {
      assertThatCode(commit).doesNotThrowAnyException();
      return true;
    }

    assertThatThrownBy(commit).isInstanceOf(CommitFailedException.class);
    return false;
  }

  private void assertUnchanged(TableMetadata base) {
    assertThat(base().metadataFileLocation()).isEqualTo(base.metadataFileLocation());
    assertThat(TestLake.ids(plain)).containsExactly(0L, 1L);
  }

  @Test
  void allIsEncryptedFromOneCommitOn() throws IOException {
    TableMetadata base = create();
    Table running = lake.open(Map.of()).loadTable(T);
    KeyIdChange.commit(catalog, T, base, encrypted(base, 0, 1));
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      Table table = fresh.loadTable(T);
      assertThat(TestLake.ids(table)).containsExactly(0L, 1L);
      assertThat(table.uuid()).isEqualTo(plain.uuid());
      assertThat(table.properties())
          .containsEntry("encryption.key-id", "k1")
          .containsEntry("owner-team", "sales");
      TestLake.append(table, 2);
      KeyIdChange.requireEncrypted(fresh, T, base);
      assertThatThrownBy(() -> TestLake.append(running, 3)) // its file was written before
          .isInstanceOf(PlaintextException.class);
      TestLake.append(running, 3);
      TableProcess.checkReachable(table);
      assertThat(TestLake.ids(fresh.loadTable(T))).containsExactly(0L, 1L, 2L, 3L);
    }

    if (backend == Backend.HIVE) { // and stock Iceberg reads and writes it
      try (EncryptedCatalog fresh = lake.open(Map.of())) {
        Table behind = TestLake.append(fresh.delegate().loadTable(T), 4);
        assertThat(TestLake.ids(behind)).containsExactly(0L, 1L, 2L, 3L, 4L);
        TableProcess.checkReachable(fresh.loadTable(T));
      }
    }
  }

  @Test
  void anotherCommitComesFirst() throws IOException {
    TableMetadata base = create();
    TableMetadata next = encrypted(base, 0, 1);
    TestLake.append(catalog.loadTable(T), 2);
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, next))
        .isInstanceOf(CommitFailedException.class);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(0L, 1L, 2L);
    assertThat(base().properties()).doesNotContainKey("encryption.key-id");
  }

  @Test
  void plaintextThatWouldStayIsRefused() {
    TableMetadata base = create();
    TableMetadata keeps =
        TableMetadata.buildFrom(base)
            .upgradeFormatVersion(3)
            .setProperties(Map.of("encryption.key-id", "k1"))
            .addEncryptionKey(Kek.make("lake.db.t", base, "k1", catalog.context().kms()))
            .build();
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, keeps))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "its files would stay plaintext");
    assertUnchanged(base);

    Staged staged = staged(base);
    BaseTable table = new BaseTable(staged, "lake.db.t");
    table.newAppend().appendFile(TestLake.write(plain, 5)).commit();
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, staged.current()))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("adds a file without encryption");
    assertUnchanged(base);

    Staged carrying = stage(keeps);
    TestLake.append(new BaseTable(carrying, "lake.db.t"), 2); // its list names all manifests
    TableMetadata carried =
        TableMetadata.buildFrom(carrying.current()).removeSnapshots(ids(base)).build();
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, carried))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("adds a manifest without encryption");
    assertUnchanged(base);
  }

  @Test
  void statisticsThatWouldStayAreRefused() {
    create();
    plain
        .updateStatistics()
        .setStatistics(new GenericStatisticsFile(7, "s.puffin", 1, 1, List.of()))
        .commit();
    TableMetadata base = base();
    TableMetadata next = encrypted(base, 0, 1);
    assertThat(next.statisticsFiles()).as("of a snapshot that is not there").hasSize(1);
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, next))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("its files would stay plaintext");
    assertUnchanged(base);
  }

  @Test
  void plaintextOfAnotherClientIsTold() throws IOException {
    TableMetadata base = create();
    TableMetadata next = encrypted(base, 0, 1);
    TableOperations ops = ((BaseTable) catalog.loadTable(T)).operations();
    Table other = lake.open(Map.of()).loadTable(T);
    long first = base.currentSnapshot().snapshotId();
    other.manageSnapshots().createBranch("other", first).commit();
    other.newAppend().toBranch("other").appendFile(TestLake.write(other, 7)).commit();
    if (isTaken(() -> ops.commit(ops.current(), next))) {
      assertThatThrownBy(() -> KeyIdChange.requireEncrypted("lake.db.t", ops.refresh()))
          .isInstanceOf(PlaintextException.class)
          .hasMessageContainingAll("lake.db.t", "another client committed it");
    }
  }

  /** Such a tag goes with the snapshot that it is on. */
  @Test
  void aTagOfAnotherClientThatIsGoneIsTold() throws IOException {
    TableMetadata base = create();
    TableMetadata next = encrypted(base, 0, 1);
    TableOperations ops = ((BaseTable) catalog.loadTable(T)).operations();
    Table other = lake.open(Map.of()).loadTable(T);
    other.manageSnapshots().createTag("late", base.currentSnapshot().snapshotId()).commit();
    if (isTaken(() -> ops.commit(ops.current(), next))) {
      TestLake.append(catalog.loadTable(T), 2);
      assertThatThrownBy(() -> KeyIdChange.requireEncrypted(catalog, T, base))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContainingAll("lake.db.t", "removed branches and tags", ": late (snapshot ");
    }
  }

  @Test
  void aReplacementThatBeganBeforeDoesNotUndoADecryption() {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    Transaction replace = catalog.buildTable(T, TestLake.SCHEMA).replaceTransaction();
    replace.newAppend().appendFile(TestLake.write(replace.table(), 2)).commit();
    decrypt();
    assertThatThrownBy(replace::commitTransaction)
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "cannot be set on a table that is not encrypted");
    Table table = catalog.loadTable(T);
    assertThat(table.properties()).doesNotContainKey("encryption.key-id");
    assertThat(table.currentSnapshot()).isNull();
  }

  /**
   * A REST server takes it beside the decryption, which adds no snapshot of that branch.
   *
   * @param branch where the other client appends
   */
  @ParameterizedTest
  @ValueSource(strings = {"main", "work"})
  void aSnapshotOfAnotherClientBesideADecryptionKeepsItsKeys(String branch) throws IOException {
    Map<String, String> length = Map.of("encryption.data-key-length", "32");
    Table before = TestLake.createTable(catalog, "t", length);
    if (branch.equals("work")) {
      TestLake.append(before, 1);
    }

    BaseTable table = catalog.context().unchecked(T);
    TableMetadata base = TestLake.metadata(catalog.loadTable(T));
    Table other = lake.open(Map.of()).loadTable(T);
    if (branch.equals("work")) {
      other.manageSnapshots().createBranch(branch).commit();
    }

    other.newAppend().toBranch(branch).appendFile(TestLake.write(other, 2)).commit();
    TableMetadata plaintext = PlaintextForm.of(base);
    if (isTaken(() -> catalog.context().commitPlaintext(T, table, base, plaintext))) {
      long added = other.refs().get(branch).snapshotId();
      assertThatThrownBy(() -> KeyIdChange.requireDecrypted(catalog, T, base))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContainingAll("lake.db.t", "snapshot " + added, "another client committed it");
      try (EncryptedCatalog fresh = lake.open(Map.of())) {
        Table now = fresh.loadTable(T);
        assertThat(now.properties())
            .containsEntry("encryption.key-id", "k1")
            .containsAllEntriesOf(length)
            .doesNotContainKey("encryption.former-key-id");
        assertThat(TestLake.rows(now, added)).contains(2L);
      }
    }
  }

  @Test
  void aTagThatADecryptionRemovedIsTold() throws IOException {
    Table before = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    BaseTable table = catalog.context().unchecked(T);
    TableMetadata base = TestLake.metadata(before);
    Table other = lake.open(Map.of()).loadTable(T);
    other.manageSnapshots().createTag("late", base.currentSnapshot().snapshotId()).commit();
    String file = TestLake.metadata(other).metadataFileLocation();
    TableMetadata plaintext = PlaintextForm.of(base);
    if (isTaken(() -> catalog.context().commitPlaintext(T, table, base, plaintext))) {
      assertThatThrownBy(() -> KeyIdChange.requireDecrypted(catalog, T, base))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContainingAll("removed branches and tags", ": late (snapshot ", file);
    }
  }

  private void decrypt() {
    TableMetadata base = TestLake.metadata(catalog.loadTable(T));
    KeyIdChange.decrypt(catalog, T, base, PlaintextForm.of(base));
  }

  /** A worker of Kafka Connect writes it, and the coordinator loads the table again. */
  @Test
  void aFileFromBeforeADecryptionIsRefused() throws IOException {
    Table before = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    DataFile encrypted = TestLake.write(before, 2);
    decrypt();
    Table table = catalog.loadTable(T);
    assertThat(table.properties()).containsEntry("encryption.former-key-id", "k1");
    assertThatThrownBy(() -> table.newAppend().appendFile(encrypted).commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(
            "lake.db.t", "adds encrypted file " + encrypted.location(), "encrypted with 'k1'");
    TestLake.append(table, 3);
    assertThat(TestLake.ids(table)).containsExactly(3L);

    this.plain = table;
    TableMetadata plaintext = base();
    Staged staged = stage(TestLake.encrypted(catalog, T, plaintext));
    TestLake.append(new BaseTable(staged, "lake.db.t"), 3);
    KeyIdChange.commit(catalog, T, plaintext, staged.current());
    Table again = catalog.loadTable(T);
    assertThat(again.properties()).doesNotContainKey("encryption.former-key-id");
    again.newAppend().appendFile(encrypted).commit(); // as the hint says
    assertThat(TestLake.ids(again)).containsExactly(2L, 3L);
  }

  @Test
  void nothingIsStagedForATableThatWasDecrypted() {
    Table before = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    String job = "0123456789abcdef0123456789abcdef";
    String staged = before.location() + "/metadata/" + job + "-" + job + "-00000-0-1-00001.avro";
    MasterKeyRotation.run(catalog, T, "k2", false);
    decrypt();
    assertThatThrownBy(() -> before.io().newOutputFile(staged))
        .isInstanceOf(NotEncryptedException.class)
        .hasMessageContainingAll("lake.db.t", "Restart the job");
    before.refresh();
    assertThatThrownBy(before::encryption)
        .as("it was decrypted by those who may")
        .isInstanceOf(NotEncryptedException.class)
        .hasMessageContainingAll("lake.db.t", "decrypt_table has made it plaintext", "REFRESH");
  }

  @Test
  void aStockClientAddsSuchAFileAndNobodyReadsTheTable() throws IOException {
    Table before = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    DataFile encrypted = TestLake.write(before, 2);
    decrypt();
    Table stock = lake.openStock().loadTable(T);
    stock.newAppend().appendFile(encrypted).commit();
    assertThatThrownBy(() -> TestLake.ids(stock))
        .as("control")
        .isInstanceOf(RuntimeException.class);
  }

  /** A replica that lags, say, gives it after newer one. */
  @Test
  void olderMetadataShowsNoKeyIdThatWasRemoved() {
    TableMetadata base = create();
    KeyIdChange.commit(catalog, T, base, encrypted(base, 0, 1));
    TableMetadata now = TestLake.metadata(catalog.loadTable(T));
    TableKeys keys =
        new TableKeys("lake.db.t", EncryptionManagerFactory.load(Map.of()), catalog.context()::kms);
    keys.managerFor(now);
    keys.learn(now);
    assertThatThrownBy(() -> keys.managerFor(base))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("lake.db.t", "older metadata than before", "replica that lags");
    TableMetadata removed =
        TableMetadata.buildFrom(now).removeProperties(Set.of("encryption.key-id")).build();
    assertThatThrownBy(() -> keys.managerFor(removed)).isInstanceOf(TamperedException.class);
  }
}
