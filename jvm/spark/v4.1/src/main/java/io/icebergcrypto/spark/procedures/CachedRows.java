package io.icebergcrypto.spark.procedures;

import org.apache.spark.sql.SparkSession;

/** Rows of tables that the session has cached, as by {@code CACHE TABLE}. */
final class CachedRows {
  private CachedRows() {}

  /** Has Spark read those of a table, and what is made of them, again. */
  static void readAgain(SparkSession spark, String table) {
    spark.catalog().refreshTable(table);
  }
}
