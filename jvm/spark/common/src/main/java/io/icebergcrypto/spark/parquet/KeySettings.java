package io.icebergcrypto.spark.parquet;

import java.util.List;
import java.util.Locale;

/** Which settings decide on the keys of Parquet files. */
final class KeySettings {
  /** What their names begin with. */
  static final List<String> PREFIXES =
      List.of("parquet.encryption.", "parquet.crypto.", "iceberg-crypto.");

  private KeySettings() {}

  /** Whether it is one; of options, case does not count. */
  static boolean isOne(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    return PREFIXES.stream().anyMatch(lower::startsWith);
  }

  /** The name in the case that it has in a Hadoop configuration. */
  static String name(String option) {
    return isOne(option) ? option.toLowerCase(Locale.ROOT) : option;
  }
}
