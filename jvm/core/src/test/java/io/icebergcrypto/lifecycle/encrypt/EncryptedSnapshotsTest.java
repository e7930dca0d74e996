package io.icebergcrypto.lifecycle.encrypt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** With Spark by test_branches_and_tags in test_encrypt_table.py. */
@ParameterizedClass
@EnumSource(names = "HADOOP")
class EncryptedSnapshotsTest extends LakeFixture {
  private Table plain;

  /**
   * A tag of main's head comes before a tag and a branch that have other rows.
   *
   * @param shared whether all have a file in common
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void noneHasTheRowsOfMainBesideItsOwn(boolean shared) throws IOException {
    this.plain = catalog.createTable(T, TestLake.SCHEMA);
    DataFile old = TestLake.write(plain, 1);
    DataFile work = TestLake.write(plain, 2);
    DataFile main = TestLake.write(plain, 3);
    plain.newAppend().appendFile(old).commit();
    plain.manageSnapshots().createTag("old", plain.currentSnapshot().snapshotId()).commit();
    plain.newOverwrite().deleteFile(old).addFile(work).commit();
    plain.manageSnapshots().createBranch("work", plain.currentSnapshot().snapshotId()).commit();
    plain.newOverwrite().deleteFile(work).addFile(main).commit();
    plain.manageSnapshots().createTag("again", plain.currentSnapshot().snapshotId()).commit();

    TableMetadata base = TestLake.metadata(plain);
    Map<String, Version> versions = Version.byRef("lake.db.t", base);
    List<LoggedGroup> common = shared ? List.of(group(TestLake.write(plain, 4))) : List.of();
    Map<Version, List<LoggedGroup>> groups = new HashMap<>();
    Map.of("old", old, "work", work, "main", main)
        .forEach(
            (ref, file) ->
                groups.put(
                    versions.get(ref),
                    Stream.concat(common.stream(), Stream.of(group(file))).toList()));
    BaseTable made = make(base, groups);
    Map.of("old", 1L, "work", 2L, "main", 3L, "again", 3L)
        .forEach(
            (ref, id) ->
                assertThat(TestLake.rows(made, made.refs().get(ref).snapshotId()))
                    .as(ref)
                    .isEqualTo(shared ? List.of(id, 4L) : List.of(id)));
  }

  /** Its schema lacks a column by which the table is partitioned and sorted since. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aTagThatIsOlderThanAPartitionField(boolean replaced) throws IOException {
    PartitionSpec byData = PartitionSpec.builderFor(TestLake.SCHEMA).identity("data").build();
    this.plain =
        replaced
            ? catalog.createTable(T, TestLake.SCHEMA, byData)
            : catalog.createTable(T, TestLake.SCHEMA);
    Table files = catalog.createTable(TableIdentifier.of(TestLake.DB, "files"), TestLake.SCHEMA);
    DataFile old = in(plain.spec(), TestLake.write(files, 1), replaced ? "data=x" : "");
    plain.newAppend().appendFile(old).commit();
    plain.manageSnapshots().createTag("old", plain.currentSnapshot().snapshotId()).commit();
    plain.updateSchema().addColumn("day", Types.DateType.get()).commit();
    UpdatePartitionSpec spec = plain.updateSpec().addField("day");
    (replaced ? spec.removeField("data") : spec).commit();
    plain.replaceSortOrder().asc("day").commit();
    DataFile main = in(plain.spec(), TestLake.write(files, 2), "day=2026-01-02");
    plain.newOverwrite().deleteFile(old).addFile(main).commit();
    if (replaced) {
      plain.updateSchema().deleteColumn("data").commit();
    }

    TableMetadata base = TestLake.metadata(plain);
    Map<String, Version> versions = Version.byRef("lake.db.t", base);
    TableMetadata form = PlaintextForm.of(base);
    int specId = WritableSpec.of(form, base.schemasById().get(0), 0);
    assertThat(form.spec(specId).isUnpartitioned()).isTrue();
    BaseTable made =
        make(
            base,
            Map.of(
                versions.get("old"), List.of(group(old, plain.specs().get(0))),
                versions.get("main"), List.of(group(main, plain.spec()))));
    Map.of("old", 1L, "main", 2L)
        .forEach(
            (ref, id) ->
                assertThat(TestLake.rows(made, made.refs().get(ref).snapshotId()))
                    .as(ref)
                    .containsExactly(id));
    TableMetadata now = made.operations().current();
    assertThat(now.snapshot(now.ref("old").snapshotId()).schemaId()).isZero();
    assertThat(now.currentSchemaId()).isEqualTo(base.currentSchemaId());
    assertThat(now.spec()).isEqualTo(base.spec());
    assertThat(now.sortOrder()).isEqualTo(base.sortOrder());
  }

  /** They would have purge_plaintext delete files that other branches of the catalog need. */
  @Test
  void aPlaintextTableHasNoPropertiesOfAPurge() {
    Table table = catalog.createTable(T, TestLake.SCHEMA);
    Map<String, String> planted = new HashMap<>();
    EncryptionProperties.OF_PLAINTEXT.forEach(name -> planted.put(name, "true"));
    TableMetadata base =
        TableMetadata.buildFrom(TestLake.metadata(table)).setProperties(planted).build();
    assertThat(EncryptedForm.of(base, "k1", List.of()).properties())
        .containsEntry("encryption.key-id", "k1")
        .doesNotContainKeys(planted.keySet().toArray(String[]::new));
  }

  /** Iceberg builds no metadata whose current schema is that of the tag. */
  @Test
  void aTagWithAColumnWhoseNameAPartitionFieldHasNow() {
    Schema schema =
        new Schema(
            Types.NestedField.optional(1, "ts", Types.TimestampType.withoutZone()),
            Types.NestedField.optional(2, "ts_day", Types.DateType.get()));
    Table table = catalog.createTable(T, schema);
    table.updateSchema().deleteColumn("ts_day").commit();
    table.updateSpec().addField(Expressions.day("ts")).commit();
    TableMetadata base = TestLake.metadata(table);
    assertThatThrownBy(() -> EncryptedForm.withSchema(base, 0))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("schema 0", "ts_day", "hint: Nothing was changed. Copy the rows");
  }

  private static DataFile in(PartitionSpec spec, DataFile file, String partition) {
    return DataFiles.builder(spec)
        .withPath(file.location())
        .withFormat(file.format())
        .withFileSizeInBytes(file.fileSizeInBytes())
        .withRecordCount(file.recordCount())
        .withPartitionPath(partition)
        .build();
  }

  private BaseTable make(TableMetadata base, Map<Version, List<LoggedGroup>> groups) {
    return EncryptedSnapshots.make(
        catalog,
        "lake.db.t",
        catalog.context().unchecked(T).operations(),
        base,
        PlaintextForm.of(base),
        groups);
  }

  private LoggedGroup group(DataFile file) {
    return group(file, plain.spec());
  }

  private LoggedGroup group(DataFile file, PartitionSpec partitioned) {
    String path = file.location().replaceFirst("\\.parquet$", "-m0.avro");
    ManifestWriter<DataFile> writer =
        ManifestFiles.write(2, partitioned, plain.io().newOutputFile(path), null);
    try (writer) {
      writer.add(file);
    } catch (IOException e) {
      throw new AssertionError(e);
    }

    ManifestFile manifest = writer.toManifestFile();
    String spec = PartitionSpecParser.toJson(PartitionSpec.unpartitioned());
    return new LoggedGroup(0, 2, spec, "", List.of(), List.of(manifest));
  }
}
