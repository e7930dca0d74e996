package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.DVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Delete files in plain Java: written, but not read, as Iceberg's readers there ask for no key. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class GenericDeletesTest extends LakeFixture {
  @Override
  protected Set<Backend> byDay() {
    return EnumSet.of(Backend.JDBC);
  }

  @Test
  void genericsCannotReadDeleteFiles() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    DataFile data = TestLake.write(table, 1, 2, 3);
    table.newAppend().appendFile(data).commit();
    for (List<DeleteFile> deletes : List.of(vector(table, data), equality(table))) {
      long before = table.currentSnapshot().snapshotId();
      RowDelta change = table.newRowDelta();
      deletes.forEach(change::addDeletes);
      change.commit();

      assertThat(deletes)
          .allMatch(file -> TestLake.magic(TestLake.path(file.location())).encrypted());
      assertThatThrownBy(() -> TestLake.ids(table))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", deletes.get(0).location(), "without its key");
      table.manageSnapshots().rollbackTo(before).commit();
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L);
    }
  }

  private static List<DeleteFile> vector(Table table, DataFile data) throws IOException {
    DVFileWriter writer = new BaseDVFileWriter(files(table, FileFormat.PUFFIN), path -> null);
    try (writer) {
      writer.delete(data.location(), 1, table.spec(), null);
    }

    return writer.result().deleteFiles();
  }

  private static List<DeleteFile> equality(Table table) throws IOException {
    EqualityDeleteWriter<Record> writer =
        new GenericFileWriterFactory.Builder(table)
            .equalityFieldIds(new int[] {1})
            .equalityDeleteRowSchema(table.schema().select("id"))
            .build()
            .newEqualityDeleteWriter(
                files(table, FileFormat.PARQUET).newOutputFile(), table.spec(), null);
    try (writer) {
      GenericRecord row = GenericRecord.create(table.schema().select("id"));
      row.setField("id", 2L);
      writer.write(row);
    }

    return List.of(writer.toDeleteFile());
  }

  private static OutputFileFactory files(Table table, FileFormat format) {
    return OutputFileFactory.builderFor(table, 1, System.nanoTime()).format(format).build();
  }
}
