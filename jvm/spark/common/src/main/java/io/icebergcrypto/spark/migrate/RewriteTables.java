package io.icebergcrypto.spark.migrate;

import java.util.List;
import java.util.UUID;
import java.util.function.Function;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ScanTaskGroup;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.ScanTaskSetManager;
import org.apache.iceberg.spark.SparkReadOptions;
import org.apache.iceberg.spark.SparkTableCache;
import org.apache.iceberg.util.TableScanUtil;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Reads chosen files of tables that are in no catalog, by the way on which Iceberg's rewrites do: a
 * name in its cache of tables, and tasks staged for it.
 */
final class RewriteTables {
  private static final String ICEBERG = "iceberg";
  private static final int LOOKBACK = 1;

  private RewriteTables() {}

  /**
   * Works on the rows of some files, deletes applied.
   *
   * @param splitSize how many bytes one task reads
   * @param openCost how many bytes each file counts at least
   * @param work what is done while the rows can be read
   */
  static <T> T read(
      SparkSession spark,
      Table table,
      List<FileScanTask> files,
      long splitSize,
      long openCost,
      Function<Dataset<Row>, T> work) {
    return named(
        table,
        id -> {
          ScanTaskSetManager.get().stageTasks(table, id, files);
          try {
            return work.apply(
                spark
                    .read()
                    .format(ICEBERG)
                    .option(SparkReadOptions.SPLIT_SIZE, splitSize)
                    .option(SparkReadOptions.LOOKBACK, LOOKBACK)
                    .option(SparkReadOptions.FILE_OPEN_COST, openCost)
                    .options(RewriteOptions.reading(id))
                    .load(id));
          } finally {
            ScanTaskSetManager.get().removeTasks(table, id);
          }
        });
  }

  /**
   * The parts of files that each partition of these rows has, in order: each of one file where the
   * open cost is the split size.
   */
  static List<ScanTaskGroup<FileScanTask>> partitions(
      List<FileScanTask> files, long splitSize, long openCost) {
    return TableScanUtil.planTaskGroups(files, splitSize, LOOKBACK, openCost);
  }

  /** Has a table in the cache, under a name, while something is done. */
  static <T> T named(Table table, Function<String, T> work) {
    String id = UUID.randomUUID().toString();
    SparkTableCache.get().add(id, table);
    try {
      return work.apply(id);
    } finally {
      SparkTableCache.get().remove(id);
    }
  }
}
