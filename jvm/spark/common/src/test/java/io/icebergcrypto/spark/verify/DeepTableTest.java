package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.spark.verify.scan.TableTree;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ManifestContent;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFileFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** All files of a table, with the lengths and the keys that the table's metadata has for them. */
@ParameterizedClass
@EnumSource(names = "HADOOP")
class DeepTableTest extends LakeFixture {
  private final List<String> checked = new ArrayList<>();

  @Test
  void everyKindOfFile() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    DataFile parquet = TestLake.write(table, 1, 2, 3);
    table.updateProperties().set("write.format.default", "avro").commit();
    DataFile avro = TestLake.write(table, 4, 5, 6);
    table.newAppend().appendFile(parquet).appendFile(avro).commit();
    OutputFileFactory puffin =
        OutputFileFactory.builderFor(table, 1, 1).format(FileFormat.PUFFIN).build();
    BaseDVFileWriter vectors = new BaseDVFileWriter(puffin, path -> null);
    vectors.delete(parquet.location(), 1, table.spec(), null);
    vectors.close();
    table.newRowDelta().addDeletes(vectors.result().deleteFiles().get(0)).commit();

    check(table);

    assertThat(checked)
        .containsExactlyInAnyOrder(
            "MANIFEST_LIST avro",
            "MANIFEST avro",
            "MANIFEST avro",
            "DATA parquet",
            "DATA avro",
            "DELETION_VECTOR puffin");
  }

  @Test
  void aListWhoseKeyIsGone() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    table.newAppend().appendFile(TestLake.write(table, 1)).commit();
    String path = table.currentSnapshot().manifestListLocation();
    assertThatThrownBy(() -> new TableTree(table, List.of()).keyMetadata(path, "gone"))
        .isInstanceOfSatisfying(
            TamperedException.class, e -> assertThat(e.code()).isEqualTo(ProblemCode.NO_KEY))
        .hasMessageContaining("its key gone is not in encryption-keys");
  }

  private void check(Table table) throws IOException {
    Snapshot snapshot = table.currentSnapshot();
    EncryptionManager keys = ((HasTableOperations) table).operations().encryption();
    KeyedFile key = new KeyedFile(snapshot.manifestListLocation(), snapshot.keyId());
    check(FileKind.MANIFEST_LIST, "avro", key.location(), -1, key.decryptKeyMetadata(keys));
    for (ManifestFile manifest : snapshot.allManifests(table.io())) {
      check(FileKind.MANIFEST, "avro", manifest.path(), manifest.length(), manifest.keyMetadata());
      try (CloseableIterable<? extends ContentFile<?>> files =
          manifest.content() == ManifestContent.DATA
              ? ManifestFiles.read(manifest, table.io(), table.specs())
              : ManifestFiles.readDeleteManifest(manifest, table.io(), table.specs())) {
        files.forEach(this::check);
      }
    }
  }

  private void check(ContentFile<?> file) {
    String format = file.format().name().toLowerCase(Locale.ROOT);
    FileKind kind = FileKind.ofContent(file.content().id(), format);
    check(kind, format, file.location(), file.fileSizeInBytes(), file.keyMetadata());
  }

  private void check(FileKind kind, String format, String path, long length, ByteBuffer key) {
    InputFile stored = org.apache.iceberg.Files.localInput(TestLake.path(path).toFile());
    for (Depth depth : Depth.values()) {
      assertThat(new FileCheck(depth).check(kind, format, stored, length, key).words())
          .as("%s of %s", depth, path)
          .isNull();
    }

    checked.add(kind + " " + format);
  }
}
