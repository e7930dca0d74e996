package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Table;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Delete files in plain Java: written, but not read, as Iceberg's readers there ask for no key. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class GenericDeletesTest extends LakeFixture {
  @Test
  void genericsCannotReadDeleteFiles() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    DataFile data = TestLake.write(table, 1, 2, 3);
    table.newAppend().appendFile(data).commit();
    for (List<DeleteFile> deletes :
        List.of(TestLake.vector(table, data, 1), List.of(TestLake.equalityDelete(table, 2)))) {
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
}
