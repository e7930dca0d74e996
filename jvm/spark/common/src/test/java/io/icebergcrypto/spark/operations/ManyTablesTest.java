package io.icebergcrypto.spark.operations;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.spark.table.EachTable;
import io.icebergcrypto.spark.table.EachTable.Left;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ManyTablesTest {
  private static final EachTable<String> FOUND =
      new EachTable<>(
          Map.of("lake.db.t", "done"),
          List.of(new Left("lake.db.denied", "may not", "ask")),
          List.of("lake.db.renamed"),
          List.of("lake.db.v"),
          List.of(new Left("lake.db.plain", "is not encrypted", null)));

  /** Or a version of a master key would be called not needed that it needs under its new name. */
  @Test
  void aTableThatHasGoneIsLeft() {
    assertThat(ManyTables.left(FOUND))
        .extracting(Left::table)
        .containsExactly("lake.db.denied", "lake.db.renamed");
    assertThat(ManyTables.left(FOUND).get(1).problem()).contains("dropped or renamed");
  }

  @Test
  void viewsAndPlaintextTablesAreSkipped() {
    assertThat(ManyTables.skipped(FOUND)).containsExactly("lake.db.v", "lake.db.plain");
  }
}
