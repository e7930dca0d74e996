package io.icebergcrypto.spark.migrate;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.Unit;
import io.icebergcrypto.lifecycle.encrypt.UnitCopy;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.ExpireSnapshots.CleanupLevel;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Manifests of copies whose data files are names only. */
class CopyManifestsTest {
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "part", Types.StringType.get()));

  @TempDir private Path folder;
  private BaseTable table;
  private ManifestFile manifest;
  private String spec;

  @BeforeEach
  void writeManifest() {
    this.table =
        (BaseTable)
            new HadoopTables()
                .create(
                    SCHEMA,
                    PartitionSpec.builderFor(SCHEMA).identity("part").build(),
                    Map.of("format-version", "3"),
                    folder + "/t");
    List<DataFile> files = List.of(file("a"), file("b"));
    this.manifest = CopyManifests.write(table, folder + "/t/metadata/copy.avro", 0, files);
    this.spec = PartitionSpecParser.toJson(table.spec());
  }

  private DataFile file(String name) {
    return DataFiles.builder(table.spec())
        .withPath("/nowhere/" + name + ".parquet")
        .withPartitionPath("part=" + name)
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build();
  }

  private LoggedGroup group(UnitCopy... copies) {
    return new LoggedGroup(0, 2, spec, "", List.of(copies), List.of(manifest));
  }

  @Test
  void filesOfASpecThatTheTableNoLongerHas() {
    assertThat(CopyManifests.files(table, group()).get(1).partition().get(0, String.class))
        .isEqualTo("b");
    table.updateSpec().removeField("part").commit();
    table.expireSnapshots().cleanExpiredMetadata(true).cleanupLevel(CleanupLevel.NONE).commit();
    assertThat(table.specs()).doesNotContainKey(0);
    assertNames();
  }

  @Test
  void filesOfASpecWhoseIdIsAnothersNow() {
    this.spec = "{\"spec-id\":0,\"fields\":[]}";
    assertNames();
  }

  private void assertNames() {
    List<DataFile> files = CopyManifests.files(table, group());
    assertThat(files.stream().map(DataFile::location))
        .containsExactly("/nowhere/a.parquet", "/nowhere/b.parquet");
    assertThat(files)
        .allMatch(file -> file.fileSizeInBytes() == 10 && file.partition().size() == 0);
  }

  @Test
  void aListThatIsTooShortIsNotThatOfTheGroup() {
    CopyProof proof = new CopyProof(null, "t");
    Unit unit = new Unit(1, 2);
    assertThat(proof.listed(table, group(new UnitCopy(unit, 0, 2, 2)))).hasSize(2);
    assertThat(proof.listed(table, group(new UnitCopy(unit, 1, 2, 2)))).isNull();
  }
}
