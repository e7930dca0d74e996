package io.icebergcrypto.spark.migrate.purge;

import io.icebergcrypto.cleanup.ProvenDeletion;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.scan.FileJobs;
import io.icebergcrypto.spark.verify.scan.FileSet.Size;
import io.icebergcrypto.spark.verify.scan.Storage;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.io.CloseableIterator;
import org.apache.iceberg.io.FileIO;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;

/**
 * What Spark's tasks could not delete.
 *
 * @param left how many files are not known to be gone
 * @param first the first of them, and why
 */
record Deletion(long left, List<String> first) {
  private static final int NAMED = 10;
  private static final StructType LEFT =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("why", DataTypes.StringType, false);

  /**
   * Deletes files.
   *
   * @param files rows that have path and length
   * @param count how many they are
   * @param listed whether the caller lists them afterwards; else each is looked at
   */
  static Deletion of(
      SparkSession spark,
      Broadcast<Storage> storage,
      Dataset<Row> files,
      long count,
      boolean listed,
      Progress progress) {
    Progress.Counter counter = progress.counter();
    MapPartitionsFunction<Row, Row> delete =
        rows -> {
          FileIO io = storage.value().io();
          ProvenDeletion deletion =
              listed ? ProvenDeletion.beforeListing(io) : new ProvenDeletion(io);
          return delete(deletion, counter, rows);
        };
    Dataset<Row> left =
        new FileJobs(spark)
            .spread(files.select("path", "length"), new Size(count, 0))
            .mapPartitions(delete, Encoders.row(LEFT))
            .persist(StorageLevel.MEMORY_AND_DISK());
    try {
      long leftCount = left.count();
      return new Deletion(leftCount, leftCount == 0 ? List.of() : first(left));
    } finally {
      left.unpersist();
    }
  }

  private static List<String> first(Dataset<Row> left) {
    return left.orderBy("path").takeAsList(NAMED).stream()
        .map(row -> row.getString(0) + ": " + row.getString(1))
        .toList();
  }

  private static Iterator<Row> delete(
      ProvenDeletion deletion, Progress.Counter counter, Iterator<Row> rows) {
    Map<String, String> left =
        deletion.delete(
            CloseableIterator.transform(
                CloseableIterator.withClose(rows),
                row -> {
                  counter.add(row.getLong(1));
                  return row.getString(0);
                }));
    return left.entrySet().stream()
        .map(file -> RowFactory.create(file.getKey(), file.getValue()))
        .iterator();
  }
}
