package io.icebergcrypto.lifecycle.encrypt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;

final class VersionTest {
  private static final Schema SCHEMA =
      new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));

  @Test
  void thereIsABitForEachOfUpTo63() throws Exception {
    try (InMemoryCatalog catalog = new InMemoryCatalog()) {
      catalog.initialize("lake", Map.of());
      catalog.createNamespace(Namespace.of("db"));
      BaseTable table = (BaseTable) catalog.createTable(TableIdentifier.of("db", "t"), SCHEMA);
      for (int i = 1; i <= 63; i++) {
        tagged(table, "tag" + i);
      }

      table.manageSnapshots().createBranch("another").commit(); // of the last snapshot, too
      assertThat(Version.distinct(Version.byRef("lake.db.t", table.operations().current())))
          .hasSize(63);
      tagged(table, "tag64");
      assertThatThrownBy(() -> Version.byRef("lake.db.t", table.operations().current()))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", "more than 63 different branches and tags")
          .hasMessageContaining("hint: Nothing was changed. Drop those");
    }
  }

  private static void tagged(BaseTable table, String tag) {
    table.newFastAppend().commit();
    table.manageSnapshots().createTag(tag, table.currentSnapshot().snapshotId()).commit();
  }
}
