package io.icebergcrypto.faults;

import static io.icebergcrypto.faults.Operation.minus;
import static io.icebergcrypto.faults.Operation.plus;
import static io.icebergcrypto.faults.Operation.replaced;

import io.icebergcrypto.faults.Operation.Trait;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;

/**
 * Operations that write or delete rows, or files of them. Without delete files: Iceberg's generic
 * reader opens these without their keys, and is refused.
 */
final class RowOperations {
  private RowOperations() {}

  static Operation append(long id) {
    return Operation.of(
        "APPEND", plus(id), (catalog, name) -> TestLake.append(catalog.loadTable(name), id));
  }

  static List<Operation> all() {
    return List.of(
        append(9),
        Operation.of(
            "DELETE",
            minus(2),
            (catalog, name) ->
                catalog
                    .loadTable(name)
                    .newDelete()
                    .deleteFromRowFilter(Expressions.equal("id", 2))
                    .commit()),
        Operation.of(
            "OVERWRITE",
            replaced(2, 9),
            (catalog, name) -> {
              Table table = catalog.loadTable(name);
              DataFile added = TestLake.write(table, 9);
              table
                  .newOverwrite()
                  .overwriteByRowFilter(Expressions.equal("id", 2))
                  .addFile(added)
                  .commit();
            }),
        Operation.of(
            "REPLACE_PARTITIONS",
            rows -> List.of(9L),
            (catalog, name) -> {
              Table table = catalog.loadTable(name);
              table.newReplacePartitions().addFile(TestLake.write(table, 9)).commit();
            }),
        Operation.of(
            "COMPACT",
            (catalog, name) -> {
              Table table = catalog.loadTable(name);
              RewriteFiles compacted =
                  table.newRewrite().validateFromSnapshot(table.currentSnapshot().snapshotId());
              files(table, 1, 2, 3).forEach(compacted::deleteFile);
              compacted.addFile(TestLake.write(table, 1, 2, 3)).commit();
            },
            table -> locations(table, 1).equals(locations(table, 3))),
        Operation.of(
                "REWRITE_MANIFESTS",
                (catalog, name) ->
                    catalog.loadTable(name).rewriteManifests().clusterBy(file -> "all").commit(),
                table ->
                    table.currentSnapshot().allManifests(table.io()).stream()
                            .filter(manifest -> manifest.existingFilesCount() > 1)
                            .count()
                        > 0)
            .that(Trait.REPEATS),
        Operation.of(
            "TRANSACTION",
            replaced(2, 9),
            (catalog, name) -> {
              Table table = catalog.loadTable(name);
              DataFile added = TestLake.write(table, 9);
              Transaction both = table.newTransaction();
              both.newDelete().deleteFromRowFilter(Expressions.equal("id", 2)).commit();
              both.newAppend().appendFile(added).commit();
              both.commitTransaction();
            }));
  }

  /** The data files with these rows. */
  private static Set<DataFile> files(Table table, long... ids) {
    Set<DataFile> files = new HashSet<>();
    for (long id : ids) {
      try (CloseableIterable<FileScanTask> tasks =
          table.newScan().filter(Expressions.equal("id", id)).planFiles()) {
        tasks.forEach(task -> files.add(task.file()));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    return files;
  }

  private static List<String> locations(Table table, long id) {
    return files(table, id).stream().map(DataFile::location).toList();
  }
}
