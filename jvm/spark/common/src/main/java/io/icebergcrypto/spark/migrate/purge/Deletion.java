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

/** Deletes files in Spark's tasks, and holds what could not be deleted until it is closed. */
final class Deletion implements AutoCloseable {
  private static final StructType LEFT =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("why", DataTypes.StringType, false);

  private final Dataset<Row> left;
  private final long count;

  /**
   * Deletes them.
   *
   * @param files rows that have path and length
   * @param count how many they are
   * @param listed whether the caller lists them afterwards; else each is looked at
   */
  Deletion(
      SparkSession spark,
      Broadcast<Storage> shared,
      Dataset<Row> files,
      long count,
      boolean listed,
      Progress progress) {
    Broadcast<Storage> storage = shared;
    Progress.Counter counter = progress.counter();
    MapPartitionsFunction<Row, Row> delete =
        rows -> {
          FileIO io = storage.value().io();
          ProvenDeletion deletion =
              listed ? ProvenDeletion.beforeListing(io) : new ProvenDeletion(io);
          return delete(deletion, counter, rows);
        };
    this.left =
        new FileJobs(spark)
            .spread(files.select("path", "length"), new Size(count, 0))
            .mapPartitions(delete, Encoders.row(LEFT))
            .persist(StorageLevel.MEMORY_AND_DISK());
    this.count = left.count();
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

  /** How many files are not known to be gone. */
  long left() {
    return count;
  }

  /** The first of them, and why. */
  List<String> first(int most) {
    return left.orderBy("path").takeAsList(most).stream()
        .map(row -> row.getString(0) + ": " + row.getString(1))
        .toList();
  }

  @Override
  public void close() {
    left.unpersist();
  }
}
