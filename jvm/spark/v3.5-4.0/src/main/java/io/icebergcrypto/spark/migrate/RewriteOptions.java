package io.icebergcrypto.spark.migrate;

import java.util.Map;
import org.apache.iceberg.spark.SparkReadOptions;
import org.apache.iceberg.spark.SparkWriteOptions;

/**
 * The options by which Iceberg takes a read or a write for a rewrite's. Without them it reads no
 * staged tasks, and knows no row ids.
 */
final class RewriteOptions {
  private RewriteOptions() {}

  /** Those for reading the tasks that are staged under this name. */
  static Map<String, String> reading(String name) {
    return Map.of(SparkReadOptions.SCAN_TASK_SET_ID, name);
  }

  /** Those for writing files that the coordinator has under this name. */
  static Map<String, String> writing(String name) {
    return Map.of(SparkWriteOptions.REWRITTEN_FILE_SCAN_TASK_SET_ID, name);
  }
}
