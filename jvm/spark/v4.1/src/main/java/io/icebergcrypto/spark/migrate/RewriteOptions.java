package io.icebergcrypto.spark.migrate;

import java.util.Map;

/**
 * The options by which Iceberg takes a read or a write for a rewrite's. Spark 4.1 needs none: its
 * catalog of rewrites knows a table's name.
 */
final class RewriteOptions {
  private RewriteOptions() {}

  /** Those for reading the tasks that are staged under this name. */
  static Map<String, String> reading(String name) {
    return Map.of();
  }

  /** Those for writing files that the coordinator has under this name. */
  static Map<String, String> writing(String name) {
    return Map.of();
  }
}
