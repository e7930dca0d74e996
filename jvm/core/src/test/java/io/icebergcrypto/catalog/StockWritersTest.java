package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.MetadataAuthenticationTest;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Files;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What a stock client does to encrypted tables, which nobody can hinder: each test has it do so
 * first, as the control, and then has ours notice. JDBC and Hadoop catalogs do not authenticate the
 * metadata here, which would refuse all of it: {@link MetadataAuthenticationTest}.
 */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST"})
class StockWritersTest extends LakeFixture {
  private static final Map<String, String> ALLOW = Map.of("encryption.plaintext-files", "allow");
  private static final Map<String, String> REQUIRED = Map.of("encryption.required", "true");

  @Override
  protected Map<String, String> properties() {
    return backend == Backend.REST
        ? Map.of()
        : Map.of(EncryptionProperties.METADATA_AUTHENTICATION, "off");
  }

  private Table create() {
    return TestLake.createTable(catalog, "t", Map.of());
  }

  private Table load(Map<String, String> properties) throws IOException {
    return lake.open(properties).loadTable(T);
  }

  /** A plaintext data file of the table, in no snapshot. */
  private DataFile plaintextFile(long id) throws IOException {
    DataFile file = TestLake.write(lake.openStock().loadTable(T), id);
    assertThat(file.keyMetadata()).isNull();
    return file;
  }

  /** The KEK that CREATE made tells: nothing else in an empty table does. */
  @Test
  void aKeyIdThatIsRemovedFromAnEmptyTableIsMissed() throws IOException {
    create();
    Table stock = lake.openStock().loadTable(T);
    stock.updateProperties().remove("encryption.key-id").commit();
    assertThat(TestLake.magic(TestLake.path(TestLake.write(stock, 1).location())).encrypted())
        .as("control")
        .isFalse();

    assertThatThrownBy(() -> TestLake.append(load(Map.of()), 1))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.t", "encryption.key-id", "'k1'");
  }

  @Test
  void plaintextInAnEmptyTableIsNotRead() throws IOException {
    create();
    Table stock = TestLake.append(lake.openStock().loadTable(T), 1);
    assertThat(TestLake.ids(stock)).as("control").containsExactly(1L);

    Table table = load(Map.of());
    String list = table.currentSnapshot().manifestListLocation();
    assertThatThrownBy(() -> TestLake.ids(table))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll("lake.db.t", list, "encryption.plaintext-files=allow");
    assertThatThrownBy(() -> TestLake.append(table, 2)).isInstanceOf(PlaintextException.class);
    assertThat(TestLake.ids(load(ALLOW))).containsExactly(1L);
  }

  /** Not even one without files, where such files are allowed. */
  @Test
  void aSnapshotWhoseListIsPlaintextIsNotCommitted() throws IOException {
    create();
    TableOperations ops = ((HasTableOperations) load(ALLOW)).operations();
    TableMetadata base = ops.current();
    Table stock = lake.openStock().loadTable(T);
    stock.newAppend().stageOnly().commit();
    Snapshot staged = Iterables.getOnlyElement(stock.snapshots());
    TableMetadata metadata = TableMetadata.buildFrom(base).addSnapshot(staged).build();
    assertThatThrownBy(() -> ops.commit(base, metadata))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll(
            "lake.db.t", "a manifest list without encryption: " + staged.manifestListLocation());
  }

  @Test
  void aPlaintextManifestIsNotCommitted() throws IOException {
    Table table = create();
    Table allowing = load(ALLOW);
    OutputFile file = Files.localOutput(folder.resolve("plaintext.avro").toFile());
    ManifestWriter<DataFile> manifest = ManifestFiles.write(3, table.spec(), file, null);
    try (manifest) {
      manifest.add(TestLake.write(table, 1)); // which is encrypted
    }

    assertThatThrownBy(
            () -> allowing.newFastAppend().appendManifest(manifest.toManifestFile()).commit())
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll("lake.db.t", "a manifest without encryption: " + file.location());
    assertThat(TestLake.ids(load(ALLOW))).isEmpty();
  }

  @Test
  void aPlaintextFileInAnEncryptedManifestIsNotRead() throws IOException {
    TestLake.append(create(), 1);
    DataFile plaintext = plaintextFile(2);
    Table allowing = load(ALLOW);
    allowing.newAppend().appendFile(plaintext).commit();
    assertThat(TestLake.ids(allowing)).as("control").containsExactly(1L, 2L);

    Table table = load(Map.of());
    for (Table read : List.of(table, SerializableTable.copyOf(table))) {
      assertThatThrownBy(() -> TestLake.ids(read))
          .isInstanceOf(PlaintextException.class)
          .hasMessageContainingAll("lake.db.t", plaintext.location());
    }

    table.updateProperties().set("commit.manifest.min-count-to-merge", "2").commit();
    assertThatThrownBy(() -> TestLake.append(table, 3))
        .as("a commit that lists it again, and adds none")
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll(
            "lake.db.t", plaintext.location() + " is not encrypted", "no longer in the table");

    table.newDelete().deleteFile(plaintext).commit();
    assertThat(TestLake.ids(table)).as("repaired").containsExactly(1L);
    assertThat(TestLake.ids(TestLake.append(table, 3))).containsExactly(1L, 3L);
  }

  @Test
  void anEqualFileWithoutItsKeyIsNotRead() throws IOException {
    Table table = TestLake.append(create(), 1);
    DataFile plaintext = plaintextFile(2);
    assertThatCode(() -> table.io().newInputFile(plaintext.location()).exists())
        .doesNotThrowAnyException();
    assertThatThrownBy(() -> table.io().newInputFile(plaintext).newStream())
        .isInstanceOf(PlaintextException.class);
    assertThatThrownBy(() -> table.io().newInputFile(plaintext.location()).newStream())
        .isInstanceOf(PlaintextException.class);
    String metadata = TestLake.metadata(table).metadataFileLocation();
    assertThatCode(() -> table.io().newInputFile(metadata).newStream().close())
        .doesNotThrowAnyException();
  }

  @Test
  void aStagedSnapshotWithPlaintextIsNotPublished() throws IOException {
    create();
    Table stock = lake.openStock().loadTable(T);
    stock.newAppend().appendFile(plaintextFile(1)).stageOnly().commit();
    checkNotPublished(1);
    Snapshot staged = stock.snapshots().iterator().next();
    stock.manageSnapshots().cherrypick(staged.snapshotId()).commit();
    assertThat(TestLake.ids(stock)).as("control").containsExactly(1L);
  }

  @Test
  void aStagedSnapshotWithAPlaintextFileIsNotPublished() throws IOException {
    TestLake.append(create(), 1);
    load(ALLOW).newAppend().appendFile(plaintextFile(2)).stageOnly().commit();
    checkNotPublished(2); // by moving the branch
    TestLake.append(load(Map.of()), 3);
    checkNotPublished(2); // by committing its files again
    assertThat(TestLake.ids(load(Map.of()))).containsExactly(1L, 3L);
  }

  /** Cherry-pick, roll-forward and branches of the one snapshot that is in no branch. */
  private void checkNotPublished(long id) throws IOException {
    Table table = load(Map.of());
    long staged = 0;
    for (Snapshot snapshot : table.snapshots()) {
      boolean inBranch = snapshot.snapshotId() == idOf(table.currentSnapshot());
      boolean parent =
          table.currentSnapshot() != null
              && Long.valueOf(snapshot.snapshotId()).equals(table.currentSnapshot().parentId());
      staged = inBranch || parent ? staged : snapshot.snapshotId();
    }

    long picked = staged;
    List<Path> files = TestLake.files(table);
    assertThatThrownBy(() -> table.manageSnapshots().cherrypick(picked).commit())
        .as("cherry-pick of %s", id)
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("lake.db.t");
    assertThatThrownBy(() -> table.manageSnapshots().setCurrentSnapshot(picked).commit())
        .isInstanceOf(PlaintextException.class);
    assertThatThrownBy(() -> table.manageSnapshots().createBranch("b", picked).commit())
        .isInstanceOf(PlaintextException.class);
    assertThat(TestLake.files(table)).as("no leftovers").containsExactlyInAnyOrderElementsOf(files);
  }

  private static long idOf(Snapshot snapshot) {
    return snapshot == null ? -1 : snapshot.snapshotId();
  }

  @Test
  void aDataKeyLengthThatLocksTheTableCanBeRepaired() throws IOException {
    TestLake.append(create(), 1);
    lake.openStock()
        .loadTable(T)
        .updateProperties()
        .set("encryption.data-key-length", "17")
        .commit();
    Table table = load(Map.of());
    int files = TestLake.files(table).size();
    for (Runnable use :
        List.<Runnable>of(() -> TestLake.ids(table), () -> TestLake.append(table, 2))) {
      assertThatThrownBy(use::run)
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.t", "encryption.data-key-length='17'")
          .hasMessageContainingAll("repair_table", "ALTER TABLE lake.db.t SET TBLPROPERTIES")
          .hasMessageNotContaining("'16'"); // it may have been 32
    }

    assertThat(TestLake.files(table)).hasSize(files);
    assertThatThrownBy(
            () -> table.updateProperties().set("encryption.data-key-length", "18").commit())
        .isInstanceOf(InvalidConfigurationException.class);
    table.updateProperties().set("encryption.data-key-length", "32").commit();
    TestLake.append(table, 2);
    assertThat(TestLake.ids(load(Map.of()))).containsExactly(1L, 2L);
  }

  @Test
  void aTableWithoutAKeyIsNotRegisteredWhereOneIsRequired() throws IOException {
    Catalog stock = lake.openStock();
    TableIdentifier plain = TableIdentifier.of(TestLake.DB, "plain");
    String plaintext =
        TestLake.metadata(stock.createTable(plain, TestLake.SCHEMA)).metadataFileLocation();
    String encrypted = TestLake.metadata(create()).metadataFileLocation();
    TableIdentifier copy = TableIdentifier.of(TestLake.DB, "copy");
    Catalog required = lake.open(REQUIRED);
    assertThatThrownBy(() -> required.registerTable(copy, plaintext))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.copy", "encryption.required=true");
    assertThatThrownBy(() -> required.registerTable(copy, plaintext, true))
        .isInstanceOf(InvalidConfigurationException.class);
    assertThatThrownBy(() -> required.registerTable(copy, plaintext + ".absent"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("cannot be read");
    assertThat(required.tableExists(copy)).isFalse();
    if (backend != Backend.HADOOP) { // which has no place for a table of another folder
      required.registerTable(copy, encrypted);
      TestLake.append(required.loadTable(copy), 1);
      TableIdentifier other = TableIdentifier.of(TestLake.DB, "other");
      assertThat(stock.registerTable(other, plaintext).properties())
          .as("control")
          .doesNotContainKey("encryption.key-id");
    }
  }

  @Test
  void aPlaintextTableIsNotReplacedWhereEncryptionIsRequired() throws IOException {
    Catalog stock = lake.openStock();
    stock.createTable(T, TestLake.SCHEMA);
    stock.buildTable(T, TestLake.SCHEMA).replaceTransaction().commitTransaction(); // the control
    Catalog required = lake.open(REQUIRED);
    assertThatThrownBy(() -> required.buildTable(T, TestLake.SCHEMA).replaceTransaction())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "encryption.required=true");
    assertThatThrownBy(() -> required.buildTable(T, TestLake.SCHEMA).createOrReplaceTransaction())
        .isInstanceOf(InvalidConfigurationException.class);
    assertThat(required.loadTable(T).properties()).doesNotContainKey("encryption.key-id");
  }
}
