package io.icebergcrypto.spark.procedures;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.storage.StorageLevel;

/** Rows of tables that the session has cached, as by {@code CACHE TABLE}. */
final class CachedRows {
  private CachedRows() {}

  /**
   * Has Spark read those of a table again. They leave the cache first: when Spark refreshes a
   * table, it reads by the instance of it that they were first read by, which may be older by now.
   */
  static void readAgain(SparkSession spark, String table) {
    StorageLevel level = spark.table(table).storageLevel();
    if (!level.equals(StorageLevel.NONE())) {
      spark.table(table).unpersist();
      spark.catalog().cacheTable(table, level);
    }
  }
}
