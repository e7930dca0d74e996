package io.icebergcrypto.lifecycle.repair;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.audit.diagnosis.TableDiagnosis;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.DownKms;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Tables that a stock client has left in a state in which they cannot be used: each state is made
 * by one. Hadoop catalogs do not authenticate the metadata here, but in the last tests.
 */
@ParameterizedClass
@EnumSource(names = {"REST", "HADOOP"}) // the others: RepairOnHiveTest, test_repair.py
class RepairTest extends LakeFixture {
  /** What needs no KMS, and no manifest. */
  private static final Set<Kind> AT_A_GLANCE =
      EnumSet.of(
          Kind.PLAINTEXT,
          Kind.KEY_ID_REMOVED,
          Kind.KEY_ID_EMPTY,
          Kind.KEY_ID_CHANGED,
          Kind.NO_KEK,
          Kind.UNREADABLE,
          Kind.DATA_KEY_LENGTH,
          Kind.FILE_FORMAT,
          Kind.PAGE_VERSION,
          Kind.OTHER_MASTER_KEY,
          Kind.TAMPERED);

  private EncryptedCatalog usual;

  private EncryptedCatalog open() throws IOException {
    if (usual == null) {
      this.usual = open(Map.of());
    }

    return usual;
  }

  private EncryptedCatalog open(Map<String, String> more) throws IOException {
    Map<String, String> all = new HashMap<>(more);
    if (backend == Backend.HADOOP) {
      all.put("encryption.metadata-authentication", "off");
    }

    return lake.open(all);
  }

  private Table create(Map<String, String> properties) throws IOException {
    return TestLake.createTable(open(), "t", properties);
  }

  private Catalog openStock() throws IOException {
    return lake.openStock();
  }

  private void stock(Consumer<UpdateProperties> change) throws IOException {
    UpdateProperties update = openStock().loadTable(T).updateProperties();
    change.accept(update);
    update.commit();
  }

  private static void set(UpdateProperties update, String... keysAndValues) {
    for (int i = 0; i < keysAndValues.length; i += 2) {
      update.set(keysAndValues[i], keysAndValues[i + 1]);
    }
  }

  private TableRepair repair(boolean yes) throws IOException {
    return repair(open(), yes);
  }

  private static TableRepair repair(EncryptedCatalog catalog, boolean yes) {
    return TableRepair.run(catalog, T, yes);
  }

  private TableMetadata metadata() throws IOException {
    return TestLake.metadata(openStock().loadTable(T));
  }

  /** What is found changes nothing until it is confirmed. */
  private Finding found(EncryptedCatalog catalog, Kind kind) throws IOException {
    String before = metadata().metadataFileLocation();
    TableRepair found = repair(catalog, false);
    assertThat(found.table()).isEqualTo("lake.db.t");
    assertThat(found.ok()).isFalse();
    assertThat(metadata().metadataFileLocation()).isEqualTo(before);
    Finding closely = only(found.findings(), kind);
    if (AT_A_GLANCE.contains(kind)) {
      Finding glanced = only(TableDiagnosis.atAGlance(catalog, T).findings(), kind);
      if (closely.repairable()) {
        assertThat(glanced.hint()).contains("repair_table(table => 'lake.db.t', confirm => true)");
      }
    }

    return closely;
  }

  private static Finding only(List<Finding> findings, Kind kind) {
    return findings.stream()
        .filter(finding -> finding.kind() == kind)
        .findFirst()
        .orElseThrow(() -> new AssertionError(findings));
  }

  private Finding found(Kind kind) throws IOException {
    return found(open(), kind);
  }

  private void assertRepaired(EncryptedCatalog catalog, Kind... kinds) throws IOException {
    TableRepair done = repair(catalog, true);
    assertThat(done.findings()).extracting(Finding::kind).containsExactly(kinds);
    assertThat(done.findings()).allMatch(Finding::repaired);
    assertThat(repair(false).findings()).isEmpty();
  }

  private void assertRepaired(Kind... kinds) throws IOException {
    assertRepaired(open(), kinds);
  }

  private void assertNotRepaired(EncryptedCatalog catalog, Kind kind) throws IOException {
    String before = metadata().metadataFileLocation();
    TableRepair done = repair(catalog, true);
    assertThat(done.findings()).extracting(Finding::kind).contains(kind);
    assertThat(done.findings()).noneMatch(Finding::repaired).noneMatch(Finding::repairable);
    assertThat(metadata().metadataFileLocation()).isEqualTo(before);
  }

  private void assertWhole(long... ids) throws IOException {
    EncryptedCatalog fresh = open(Map.of());
    Table table = fresh.loadTable(T);
    TableProcess.checkReachable(table);
    assertThat(TestLake.ids(table)).containsExactlyElementsOf(Arrays.stream(ids).boxed().toList());
    TestLake.append(table, 99);
    assertThat(EncryptionKeys.of(fresh, T).keys()).allMatch(key -> key.problem() == null);
  }

  @Test
  void nothingIsWrong() throws IOException {
    Table table = create(Map.of());
    assertThat(repair(true).findings()).isEmpty();
    TestLake.append(table, 1);
    String before = metadata().metadataFileLocation();
    TableRepair done = repair(true);
    assertThat(done.findings()).isEmpty();
    assertThat(done.toMap()).containsEntry("table", "lake.db.t").containsEntry("unchecked", false);
    assertThat(metadata().metadataFileLocation()).isEqualTo(before);
  }

  @Test
  void aDataKeyLengthThatNoKeyCanHave() throws IOException {
    TestLake.append(create(Map.of("encryption.data-key-length", "32")), 1);
    stock(update -> set(update, "encryption.data-key-length", "17"));
    assertThatThrownBy(() -> TestLake.ids(open().loadTable(T)))
        .as("control")
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("system.repair_table(table => 'lake.db.t', confirm => true)");
    Finding finding = found(Kind.DATA_KEY_LENGTH);
    assertThat(finding.problem()).contains("'17'");
    assertThat(finding.hint()).contains("32");
    assertRepaired(Kind.DATA_KEY_LENGTH);
    assertThat(metadata().properties()).containsEntry("encryption.data-key-length", "32");
    assertWhole(1);
  }

  @Test
  void aDataKeyLengthThatIsNoNumber() throws IOException {
    TestLake.append(create(Map.of()), 1);
    stock(update -> set(update, "encryption.data-key-length", "many"));
    assertRepaired(Kind.DATA_KEY_LENGTH);
    assertWhole(1);
  }

  @Test
  void aKeyIdThatWasRemoved() throws IOException {
    TestLake.append(create(Map.of()), 1);
    stock(update -> update.remove("encryption.key-id"));
    EncryptedCatalog strict = open(Map.of("encryption.plaintext-tables", "refuse"));
    assertThatThrownBy(() -> TestLake.append(open().loadTable(T), 2))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("system.repair_table(table => 'lake.db.t', confirm => true)");
    Finding finding = found(strict, Kind.KEY_ID_REMOVED);
    assertThat(finding.repairable()).isTrue();
    assertThat(finding.hint()).contains("'k1'", "Find out who", "verify");
    assertRepaired(strict, Kind.KEY_ID_REMOVED);
    assertWhole(1);
  }

  @Test
  void aKeyIdThatWasChanged() throws IOException {
    TestLake.append(create(Map.of()), 1);
    for (String keyId : List.of("k2", "stranger", "")) {
      stock(update -> set(update, "encryption.key-id", keyId));
      Kind kind = keyId.isEmpty() ? Kind.KEY_ID_EMPTY : Kind.KEY_ID_CHANGED;
      assertNotRepaired(open(Map.of("encryption.allowed-key-ids", "k2")), kind);
      EncryptedCatalog strict = open(Map.of("encryption.allowed-key-ids", "k1"));
      assertThat(found(strict, kind).problem()).contains("'" + keyId + "'", "'k1'");
      TableRepair done = repair(strict, true);
      assertThat(done.ok()).as("%s", done).isTrue();
      assertThat(done.findings()).extracting(Finding::kind).containsExactly(kind);
    }

    assertThat(metadata().properties()).containsEntry("encryption.key-id", "k1");
    assertWhole(1);
  }

  @Test
  void aKeyIdIsPutBackOnlyIfItsKeksAreTheTables() throws IOException {
    TestLake.append(create(Map.of()), 1);
    TableOperations ops =
        ((BaseTable) openStock().loadTable(T)).operations(); // of a client with a key k2
    EncryptedKey kek = Kek.newest(ops.current()).orElseThrow();
    EncryptedKey forged = Kek.make("forged", ops.current(), "k2", open().context().kms());
    ops.commit(
        ops.current(),
        TableMetadata.buildFrom(ops.current())
            .removeProperties(Set.of("encryption.key-id"))
            .removeEncryptionKey(kek.keyId())
            .addEncryptionKey(
                new BaseEncryptedKey(
                    kek.keyId(), forged.encryptedKeyMetadata(), "k2", kek.properties()))
            .build());
    assertThat(found(Kind.KEY_ID_REMOVED).hint()).contains("do not prove");
    assertThat(found(Kind.KEY_LOST).problem()).contains("snapshot", "does not decrypt");
    assertNotRepaired(open(), Kind.KEY_ID_REMOVED);
  }

  @Test
  void aTableThatAStockClientMade() throws IOException {
    openStock().createTable(T, TestLake.SCHEMA);
    stock(update -> set(update, "format-version", "3"));
    assertThatThrownBy(() -> repair(true))
        .isInstanceOf(NotEncryptedException.class)
        .hasMessageContaining("lake.db.t");
    stock(update -> set(update, "encryption.key-id", ""));
    assertNotRepaired(open(), Kind.KEY_ID_EMPTY);
    stock(update -> set(update, "encryption.key-id", "stranger"));
    assertThat(found(Kind.NO_KEK).repairable()).isFalse();
    assertThat(found(Kind.KEY_UNUSABLE).problem()).contains("stranger");
    MasterKeyRotation.run(open(), T, "k2", false); // as the remedies say
    assertThat(repair(false).findings()).isEmpty();
    stock(update -> set(update, "encryption.key-id", ""));
    assertRepaired(Kind.KEY_ID_EMPTY);
    assertThat(open().dropTable(T)).isTrue();
    lake.openStock().createTable(T, TestLake.SCHEMA);
    stock(update -> set(update, "format-version", "3", "encryption.key-id", "k1"));
    assertRepaired(Kind.NO_KEK);
    assertThat(Kek.all(metadata())).hasSize(1);
    assertWhole();
  }

  @Test
  void plaintextIsNamedAndLeft() throws IOException {
    Table table = TestLake.append(create(Map.of()), 1);
    long encrypted = table.currentSnapshot().snapshotId();
    Transaction replaced = openStock().buildTable(T, TestLake.SCHEMA).replaceTransaction();
    replaced.newAppend().appendFile(TestLake.write(replaced.table(), 2)).commit();
    replaced.commitTransaction();
    Snapshot plaintext = metadata().currentSnapshot();
    Finding finding = found(Kind.PLAINTEXT);
    assertThat(finding.problem())
        .contains("1 of 2 snapshots", plaintext.manifestListLocation(), "data/", ".parquet");
    assertThat(finding.hint())
        .contains(
            "set_current_snapshot(table => 'lake.db.t', snapshot_id => " + encrypted,
            "snapshot_ids => array(" + plaintext.snapshotId() + "), older_than => TIMESTAMP '1970");
    assertNotRepaired(open(), Kind.PLAINTEXT);
    Table back = open().loadTable(T);
    back.manageSnapshots().setCurrentSnapshot(encrypted).commit();
    open(Map.of("encryption.plaintext-files", "allow"))
        .loadTable(T)
        .expireSnapshots()
        .expireSnapshotId(plaintext.snapshotId())
        .commit();
    assertThat(TestLake.path(plaintext.manifestListLocation())).doesNotExist();
    assertThat(repair(false).findings()).isEmpty();
    assertWhole(1);
  }

  /** What a branch or a staged commit has is newer, and never was what main showed. */
  @Test
  void theWayBackOfMainLeadsToNoOtherBranch() throws IOException {
    Table table = TestLake.append(create(Map.of()), 1);
    table.manageSnapshots().createBranch("audit").commit();
    table.newAppend().appendFile(TestLake.write(table, 2)).toBranch("audit").commit();
    table.refresh();
    long ofAudit = table.snapshot("audit").snapshotId();
    Transaction replaced = openStock().buildTable(T, TestLake.SCHEMA).replaceTransaction();
    replaced.newAppend().appendFile(TestLake.write(replaced.table(), 3)).commit();
    replaced.commitTransaction();
    assertThat(found(Kind.PLAINTEXT).hint())
        .contains("Save the rows that are to stay", "compared")
        .doesNotContain(String.valueOf(ofAudit));
  }

  /** No finding makes people give up what can be restored. */
  @Test
  void keysThatAreGoneAreNoEmptyTable() throws IOException {
    TestLake.append(create(Map.of()), 1);
    TableOperations ops = ((BaseTable) openStock().loadTable(T)).operations();
    TableMetadata.Builder builder = TableMetadata.buildFrom(ops.current());
    ops.current().encryptionKeys().forEach(key -> builder.removeEncryptionKey(key.keyId()));
    ops.commit(ops.current(), builder.build());
    String restore = FileProblem.hint(ProblemCode.NO_KEY, FileKind.MANIFEST_LIST);
    List<Finding> findings = TableDiagnosis.atAGlance(open(), T).findings();
    assertThat(findings).extracting(Finding::kind).contains(Kind.KEY_LOST);
    assertThat(findings).extracting(Finding::kind).doesNotContain(Kind.NO_KEK);
    assertThat(findings).extracting(Finding::hint).contains(restore);
    assertThat(found(Kind.KEY_LOST).hint()).isEqualTo(restore);
  }

  @Test
  void aTableWithNothingButPlaintext() throws IOException {
    create(Map.of());
    TestLake.append(openStock().loadTable(T), 1);
    assertThat(found(Kind.PLAINTEXT).hint()).contains("CREATE TABLE <new>", "'k1'");
    assertNotRepaired(open(), Kind.PLAINTEXT);
    Files.delete(TestLake.path(metadata().currentSnapshot().manifestListLocation()));
    assertThat(found(Kind.UNREADABLE).problem()).contains("manifest list");
  }

  @Test
  void formatsThatCannotBeEncrypted() throws IOException {
    TestLake.append(create(Map.of()), 1);
    stock(
        update ->
            set(
                update,
                "write.format.default",
                "ORC",
                "write.parquet.page-version",
                "v2",
                "write.delete.format.default",
                "parquet"));
    assertThatThrownBy(() -> TestLake.append(open().loadTable(T), 2)).as("control");
    assertThat(found(Kind.FILE_FORMAT).repairable()).isTrue();
    assertRepaired(Kind.FILE_FORMAT, Kind.PAGE_VERSION);
    assertThat(metadata().properties())
        .containsEntry("write.delete.format.default", "parquet")
        .doesNotContainKeys("write.format.default", "write.parquet.page-version");
    assertWhole(1);
  }

  @Test
  @Tag("REST")
  void keksOfAnotherMasterKey() throws IOException {
    assumeTrue(backend == Backend.REST, "a commit that began before a rotation is a conflict");

    Table before = TestLake.append(create(Map.of()), 1);
    stock(update -> set(update, "encryption.key-id", "k2"));
    TestLake.append(open().loadTable(T), 2); // under a new KEK
    Finding finding = found(Kind.OTHER_MASTER_KEY);
    assertThat(finding.repairable()).isFalse();
    assertThat(finding.hint())
        .contains("rotate_master_key(table => 'lake.db.t', new_key_id => 'k2')");
    stock(update -> update.remove("encryption.key-id"));
    assertThat(found(Kind.KEY_ID_REMOVED).hint()).contains("which of these keys");
    assertNotRepaired(open(), Kind.KEY_ID_REMOVED);
    open().loadTable(T).updateProperties().set("encryption.key-id", "k2").commit();
    MasterKeyRotation.run(open(), T, "k1", false);
    assertThat(repair(false).findings()).isEmpty();
    assertWhole(1, 2);
  }

  @Test
  void aKeyThatTheKmsDoesNotGive() throws IOException {
    TestLake.append(create(Map.of()), 1);
    TestKeystore.existing(folder).delete("k1");
    EncryptedCatalog fresh = open(Map.of());
    assertThat(found(fresh, Kind.KEY_UNUSABLE).problem()).contains("k1");
    assertNotRepaired(fresh, Kind.KEY_UNUSABLE);
    Map<String, String> silent =
        Map.of(
            "encryption.kms-impl", DownKms.class.getName(),
            "encryption.kms.retry.max-attempts", "1",
            "encryption.metadata-authentication", "off");
    if (backend == Backend.REST) {
      silent = new HashMap<>(silent);
      silent.remove("encryption.metadata-authentication");
    }

    TableRepair found = repair(new TestLake(backend, folder, silent).open(Map.of()), true);
    assertThat(found.unchecked()).as("%s", found).isTrue();
    assertThat(found.ok()).isFalse();
  }

  /** What a real run leaves: tests/catalog/tables/test_encrypt_table.py. */
  @Test
  void anEncryptionThatHasBegun() throws IOException {
    Table plain = lake.openStock().createTable(T, TestLake.SCHEMA);
    String log = plain.location() + "/metadata/_encryption-" + TestLake.metadata(plain).uuid();
    Path first = TestLake.path(log + "/group-000001.json");
    Files.createDirectories(first.getParent());
    Files.writeString(first, "{}");
    Finding finding = found(Kind.ENCRYPTION_BEGUN);
    assertThat(finding.problem()).contains(log);
    assertThat(finding.hint()).contains("lake.system.encrypt_table(table => 'lake.db.t'");
    assertNotRepaired(open(), Kind.ENCRYPTION_BEGUN);
    Files.delete(first);
    assertThatThrownBy(() -> repair(true)).isInstanceOf(NotEncryptedException.class);
  }

  @Test
  void twoAtOnce() throws Exception {
    TestLake.append(create(Map.of()), 1);
    stock(update -> set(update, "encryption.data-key-length", "17"));
    Callable<TableRepair> work = () -> repair(open(Map.of()), true);
    ExecutorService threads = Executors.newFixedThreadPool(2);
    for (Future<TableRepair> done : threads.invokeAll(List.of(work, work))) {
      try {
        assertThat(done.get().ok()).isTrue();
      } catch (ExecutionException e) {
        assertThat(e.getCause())
            .isInstanceOf(IcebergCryptoException.class)
            .hasMessageContaining("Call repair_table again");
      }
    }

    threads.shutdown();
    assertThat(repair(false).findings()).isEmpty();
    assertWhole(1);
  }

  @Test
  void filesThatAreGone() throws IOException {
    Table table = TestLake.append(create(Map.of()), 1);
    Files.delete(TestLake.path(table.currentSnapshot().manifestListLocation()));
    Finding gone = found(Kind.UNREADABLE);
    assertThat(gone.problem()).contains("manifest list");
    String restore = FileProblem.hint(ProblemCode.MISSING, FileKind.MANIFEST_LIST);
    assertThat(gone.hint()).isEqualTo(restore);
    assertThat(TableDiagnosis.atAGlance(open(), T).findings())
        .extracting(Finding::hint)
        .contains(restore);
    assertNotRepaired(open(), Kind.UNREADABLE);
    TableIdentifier none = TableIdentifier.of(TestLake.DB, "none");
    assertThatThrownBy(() -> TableRepair.run(open(), none, true))
        .isInstanceOf(NoSuchTableException.class);
  }

  @Test
  void metadataThatIsNotGenuineIsNotRepaired() throws IOException {
    assumeTrue(backend != Backend.REST, "a server vouches for it");

    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    stock(
        update ->
            update.set("encryption.data-key-length", "17").set("write.format.default", "orc"));
    Finding finding = found(catalog, Kind.TAMPERED);
    assertThat(finding.hint()).contains("authenticate_metadata");
    assertThat(found(catalog, Kind.DATA_KEY_LENGTH).repairable()).isFalse();
    assertThat(found(catalog, Kind.FILE_FORMAT).hint())
        .startsWith("First make sure that its metadata can be trusted");
    assertNotRepaired(catalog, Kind.TAMPERED);
    authenticate();
    TableRepair done = repair(catalog, true);
    assertThat(done.ok()).as("%s", done).isTrue();
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(1L);

    stock(update -> update.remove("encryption.key-id"));
    assertThat(found(catalog, Kind.KEY_ID_REMOVED).repairable()).isFalse();
    assertNotRepaired(catalog, Kind.TAMPERED);
    authenticate();
    assertThat(repair(catalog, false).findings()).isEmpty();
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(1L);
  }

  private void authenticate() throws IOException {
    String file = metadata().metadataFileLocation();
    catalog
        .context()
        .authenticateMetadata(
            T, file, MetadataFile.read(openStock().loadTable(T).io(), file).sha256());
  }
}
