package io.icebergcrypto.faults;

import static io.icebergcrypto.faults.Operation.plus;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.faults.Operation.Trait;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;
import org.apache.iceberg.types.Types;

/** Operations on a table's snapshots, branches, tags, statistics and schema. */
final class HistoryOperations {
  private HistoryOperations() {}

  private static void branch(EncryptedCatalog catalog, TableIdentifier name) {
    Table table = catalog.loadTable(name);
    table.manageSnapshots().createBranch("b").commit();
    table.newAppend().appendFile(TestLake.write(table, 9)).toBranch("b").commit();
  }

  private static void staged(EncryptedCatalog catalog, TableIdentifier name) {
    Table table = catalog.loadTable(name);
    table.newAppend().appendFile(TestLake.write(table, 9)).set("wap.id", "w").stageOnly().commit();
  }

  private static void expire(Table table) {
    table.expireSnapshots().expireOlderThan(Long.MAX_VALUE).retainLast(1).commit();
  }

  static Operation expire() {
    return Operation.of(
            "EXPIRE",
            (catalog, name) -> expire(catalog.loadTable(name)),
            table -> Iterables.size(table.snapshots()) == 1)
        .that(Trait.FORGETS, Trait.REPEATS);
  }

  static List<Operation> all() {
    return List.of(
        expire(),
        Operation.of(
                "EXPIRE_IN_TRANSACTION",
                plus(9),
                (catalog, name) -> {
                  Transaction both = catalog.loadTable(name).newTransaction();
                  both.newAppend().appendFile(TestLake.write(both.table(), 9)).commit();
                  both.expireSnapshots()
                      .expireOlderThan(System.currentTimeMillis())
                      .retainLast(1)
                      .commit();
                  both.commitTransaction();
                })
            .that(Trait.FORGETS),
        Operation.of(
                "EXPIRE_ADDED",
                rows -> plus(10).apply(plus(9).apply(rows)),
                (catalog, name) -> {
                  Transaction all = catalog.loadTable(name).newTransaction();
                  all.newAppend().appendFile(TestLake.write(all.table(), 9)).commit();
                  all.newAppend().appendFile(TestLake.write(all.table(), 10)).commit();
                  all.expireSnapshots().expireOlderThan(Long.MAX_VALUE).retainLast(1).commit();
                  // if it is applied twice, each snapshot is the other's parent: a loop without end
                  assertTimeoutPreemptively(Duration.ofMinutes(1), all::commitTransaction);
                })
            .that(Trait.FORGETS),
        Operation.of(
            "CREATE_BRANCH",
            (catalog, name) -> catalog.loadTable(name).manageSnapshots().createBranch("b").commit(),
            table -> table.refs().containsKey("b")),
        Operation.of(
            "CREATE_TAG",
            (catalog, name) -> {
              Table table = catalog.loadTable(name);
              table
                  .manageSnapshots()
                  .createTag("first", table.history().get(0).snapshotId())
                  .commit();
            },
            table -> table.refs().containsKey("first")),
        Operation.of(
                "REMOVE_BRANCH",
                (catalog, name) ->
                    catalog.loadTable(name).manageSnapshots().removeBranch("b").commit(),
                table -> !table.refs().containsKey("b"))
            .preparedBy(HistoryOperations::branch),
        Operation.of(
                "APPEND_TO_BRANCH",
                (catalog, name) -> {
                  Table table = catalog.loadTable(name);
                  table.newAppend().appendFile(TestLake.write(table, 8)).toBranch("b").commit();
                },
                table ->
                    TestLake.rows(table, table.refs().get("b").snapshotId())
                        .equals(List.of(1L, 2L, 3L, 8L, 9L)))
            .preparedBy(HistoryOperations::branch),
        Operation.of(
                "FAST_FORWARD",
                plus(9),
                (catalog, name) ->
                    catalog
                        .loadTable(name)
                        .manageSnapshots()
                        .fastForwardBranch("main", "b")
                        .commit())
            .preparedBy(HistoryOperations::branch),
        Operation.of(
                "CHERRY_PICK",
                plus(9),
                (catalog, name) -> {
                  Table table = catalog.loadTable(name);
                  long staged = Iterables.getLast(table.snapshots()).snapshotId();
                  for (Snapshot snapshot : table.snapshots()) {
                    if ("w".equals(snapshot.summary().get("wap.id"))) {
                      staged = snapshot.snapshotId();
                    }
                  }

                  table.manageSnapshots().cherrypick(staged).commit();
                })
            .preparedBy(HistoryOperations::staged),
        Operation.of(
            "ROLLBACK",
            rows -> List.of(1L),
            (catalog, name) -> {
              Table table = catalog.loadTable(name);
              table.manageSnapshots().rollbackTo(table.history().get(0).snapshotId()).commit();
            }),
        Operation.of(
                "PROPERTIES",
                (catalog, name) ->
                    catalog.loadTable(name).updateProperties().set("some", "thing").commit(),
                table -> table.properties().containsKey("some"))
            .that(Trait.REPEATS),
        Operation.of(
            "ADD_COLUMN",
            (catalog, name) ->
                catalog
                    .loadTable(name)
                    .updateSchema()
                    .addColumn("more", Types.StringType.get())
                    .commit(),
            table -> table.schema().findField("more") != null),
        Operation.of(
            "PARTITION",
            (catalog, name) -> catalog.loadTable(name).updateSpec().addField("data").commit(),
            table -> table.spec().isPartitioned()),
        Operation.of(
                "STATISTICS",
                (catalog, name) -> {
                  Table table = catalog.loadTable(name);
                  table.updateStatistics().setStatistics(statistics(table)).commit();
                },
                HistoryOperations::hasStatistics)
            .with(Map.of("encryption.statistics", "encrypt")),
        Operation.of(
                "REMOVE_STATISTICS",
                (catalog, name) -> {
                  Table table = catalog.loadTable(name);
                  table
                      .updateStatistics()
                      .removeStatistics(table.statisticsFiles().get(0).snapshotId())
                      .commit();
                },
                table -> !hasStatistics(table))
            .with(Map.of("encryption.statistics", "encrypt"))
            .preparedBy(
                (catalog, name) -> {
                  Table table = catalog.loadTable(name);
                  table.updateStatistics().setStatistics(statistics(table)).commit();
                }));
  }

  private static StatisticsFile statistics(Table table) {
    return TestLake.statistics(table, table.currentSnapshot().snapshotId(), "sketch");
  }

  /** Whether it has some, which can be read. */
  private static boolean hasStatistics(Table table) {
    if (table.statisticsFiles().isEmpty()) {
      return false;
    }

    String path = table.statisticsFiles().get(0).path();
    try (PuffinReader reader = Puffin.read(table.io().newInputFile(path)).build()) {
      return Iterables.size(reader.readAll(reader.fileMetadata().blobs())) == 1;
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }
}
