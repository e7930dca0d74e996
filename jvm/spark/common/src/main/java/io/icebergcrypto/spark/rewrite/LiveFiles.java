package io.icebergcrypto.spark.rewrite;

import static org.apache.spark.sql.functions.coalesce;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;

import org.apache.iceberg.FileContent;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.Table;
import org.apache.iceberg.spark.SparkTableUtil;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * How many files the current snapshot of a table has, counted on executors.
 *
 * @param data the number of data files
 * @param deletes the number of delete files, deletion vectors each for itself
 * @param bytes the bytes of both
 */
record LiveFiles(long data, long deletes, long bytes) {
  static final LiveFiles NONE = new LiveFiles(0, 0, 0);

  /**
   * Counts those that were added up to a sequence number. No key is read: Spark asks the manifests
   * for these columns only.
   */
  static LiveFiles addedUpTo(long sequenceNumber, SparkSession spark, Table table) {
    Column ofVector = col("data_file.content_size_in_bytes"); // several of them share a file
    LiveFiles found = NONE;
    for (Row row :
        SparkTableUtil.loadMetadataTable(spark, table, MetadataTableType.ENTRIES)
            .where(col("status").lt(2)) // not those that the snapshot removed
            .where(coalesce(col("file_sequence_number"), lit(0L)).leq(sequenceNumber))
            .groupBy(col("data_file.content"))
            .agg(count(lit(1)), sum(coalesce(ofVector, col("data_file.file_size_in_bytes"))))
            .collectAsList()) {
      found = found.plus(row.getInt(0), row.getLong(1), row.getLong(2));
    }

    return found;
  }

  private LiveFiles plus(int content, long files, long size) {
    return content == FileContent.DATA.id()
        ? new LiveFiles(data + files, deletes, bytes + size)
        : new LiveFiles(data, deletes + files, bytes + size);
  }
}
