package io.icebergcrypto.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A table that another session drops while it is in use. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class DroppedTableTest extends LakeFixture {
  private Table dropped() {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    assertThat(catalog.dropTable(T, false)).isTrue();
    return table;
  }

  /** Iceberg's operations say it once, and give null from then on. */
  @Test
  void everyUseSaysThatItIsGone() {
    Table table = dropped();
    List<Consumer<Table>> uses =
        List.of(
            Table::refresh,
            Table::refresh,
            Table::newScan,
            Table::newTransaction,
            Table::expireSnapshots);
    for (Consumer<Table> use : uses) {
      assertThatThrownBy(() -> use.accept(table))
          .isInstanceOf(NoSuchTableException.class)
          .hasMessageContaining("db.t");
    }
  }

  /** Whether its operations have met that before, and said so, or not. */
  @Test
  void aCommitOfOursSaysThatItIsGone() throws IOException {
    TestLake.createTable(catalog, "t", Map.of());
    TableOperations ops = ((BaseTable) lake.openStock().loadTable(T)).operations();
    UnaryOperator<TableMetadata> dropsIt =
        base -> {
          catalog.dropTable(T, false);
          return TableMetadata.buildFrom(base).setProperties(Map.of("a", "b")).build();
        };
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> CommitRetry.commit("lake.db.t", ops, Map.of(), dropsIt))
          .isInstanceOf(NoSuchTableException.class)
          .hasMessageContaining("db.t");
    }
  }

  /** A replacement or a create makes the table again. */
  @Test
  void aTransactionThatMayCreateItDoes() {
    Transaction transaction =
        catalog
            .buildTable(T, TestLake.SCHEMA)
            .withProperty("encryption.key-id", "k1")
            .createOrReplaceTransaction();
    transaction.newAppend().appendFile(TestLake.write(transaction.table(), 1)).commit();
    transaction.commitTransaction();
    transaction =
        catalog
            .buildTable(T, TestLake.SCHEMA)
            .withProperty("encryption.key-id", "k1")
            .createOrReplaceTransaction();
    transaction.newAppend().appendFile(TestLake.write(transaction.table(), 2)).commit();
    catalog.dropTable(T, false);
    transaction.commitTransaction();
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(2L);
  }
}
