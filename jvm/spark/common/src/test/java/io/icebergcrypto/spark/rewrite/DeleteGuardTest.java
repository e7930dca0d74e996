package io.icebergcrypto.spark.rewrite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Table;
import org.apache.iceberg.exceptions.ValidationException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Which delete files may go, and that no others do. With Spark:
 * tests/catalog/tables/test_maintenance.py.
 */
@ParameterizedClass
@EnumSource(names = "JDBC")
class DeleteGuardTest extends LakeFixture {
  private static final long ALL = Long.MAX_VALUE;

  private Table table;
  private Table beside;

  @BeforeEach
  void create() {
    this.table = DeleteGuard.in((BaseTable) TestLake.createTable(catalog, "t", Map.of()));
    this.beside = catalog.loadTable(T);
  }

  @Test
  void aDeleteGoesWhenItAppliesNoMore() {
    DataFile old = append(table, 1, 2, 3);
    DeleteFile delete = delete(table, 2);
    DanglingDeletes.remove(table, ALL);
    assertThat(dangling(ALL)).isEmpty();
    assertThat(deletes()).isOne();

    rewrite(table, old, TestLake.write(table, 1, 3), 2).commit();
    assertThat(dangling(1)).isEmpty(); // it was added after that
    assertThat(dangling(2)).containsExactly(delete.location());
    DanglingDeletes.remove(table, 2);
    assertThat(deletes()).isZero();
    assertThat(TestLake.ids(table)).containsExactly(1L, 3L);
  }

  /** A position delete applies to data of its own commit, an equality delete does not. */
  @Test
  void aVectorStaysWithDataOfItsOwnCommit() {
    DataFile data = TestLake.write(table, 1, 2, 3);
    DeleteFile delete = TestLake.equalityDelete(table, 2);
    RowDelta upsert = table.newRowDelta().addRows(data).addDeletes(delete);
    TestLake.vector(table, data, 1).forEach(upsert::addDeletes);
    upsert.commit();
    assertThat(dangling(ALL)).containsExactly(delete.location());
    DanglingDeletes.remove(table, ALL);
    assertThat(deletes()).isOne();

    rewrite(table, data, TestLake.write(table, 1, 3), 1)
        .validateFromSnapshot(table.currentSnapshot().snapshotId())
        .commit(); // and the vector goes with its data
    assertThat(deletes()).isZero();
  }

  /** It is found, and then another commit adds data that is as old as its sequence number says. */
  @Test
  void aDeleteStaysThatAnotherCommitMakesApplyAgain() {
    DataFile old = append(table, 1, 2, 3);
    DataFile other = append(table, 4);
    delete(table, 2);
    DataFile without = TestLake.write(table, 1, 3);
    rewrite(table, old, without, 3).commit();
    rewrite(table, other, TestLake.write(table, 4), 3).commit();
    RewriteFiles removal = table.newRewrite();
    DanglingDeletes.find(table, ALL).forEach(removal::deleteFile);

    append(beside, 5); // newer data does not matter
    DataFile olderData = TestLake.write(beside, 1, 2);
    rewrite(beside, without, olderData, 1).commit();
    assertThatThrownBy(removal::commit)
        .isInstanceOf(ValidationException.class)
        .hasMessageContaining("still applies");
    DanglingDeletes.remove(table, ALL);
    assertThat(deletes()).isOne();

    rewrite(beside, olderData, TestLake.write(beside, 1), 3).commit();
    DanglingDeletes.remove(table, ALL);
    assertThat(deletes()).isZero();
    assertThat(TestLake.ids(table)).containsExactly(1L, 4L, 5L);
  }

  /** Iceberg looks at the data that is kept, which is empty. */
  @Test
  void aRewriteOfAllDataDropsNoDeleteOfMeanwhile() {
    DataFile old = append(table, 1, 2, 3);
    RewriteFiles rewrite = rewrite(table, old, TestLake.write(table, 1, 2, 3), 1);
    rewrite.validateFromSnapshot(table.currentSnapshot().snapshotId());
    delete(beside, 2);
    delete(beside, 3);
    assertThatThrownBy(rewrite::commit)
        .isInstanceOf(ValidationException.class)
        .hasMessageContaining("still applies");
    table.refresh();
    assertThat(deletes()).isEqualTo(2);
  }

  private static DataFile append(Table table, long... ids) {
    DataFile data = TestLake.write(table, ids);
    table.newAppend().appendFile(data).commit();
    return data;
  }

  private static DeleteFile delete(Table table, long id) {
    DeleteFile delete = TestLake.equalityDelete(table, id);
    table.newRowDelta().addDeletes(delete).commit();
    return delete;
  }

  /** As {@code rewrite_data_files} does it, with {@code use-starting-sequence-number}. */
  private static RewriteFiles rewrite(Table table, DataFile from, DataFile to, long number) {
    return table.newRewrite().deleteFile(from).addFile(to).dataSequenceNumber(number);
  }

  private List<String> dangling(long addedUpTo) {
    return DanglingDeletes.find(table, addedUpTo).stream().map(DeleteFile::location).toList();
  }

  private int deletes() {
    return table.currentSnapshot().deleteManifests(table.io()).stream()
        .mapToInt(manifest -> manifest.addedFilesCount() + manifest.existingFilesCount())
        .sum();
  }
}
