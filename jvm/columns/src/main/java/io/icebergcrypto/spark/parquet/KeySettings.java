package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.config.SessionProperties;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;

/** Which settings decide on the keys of Parquet files. */
final class KeySettings {
  /** What their names begin with. */
  static final List<String> PREFIXES = SessionProperties.OF_PARQUET;

  private KeySettings() {}

  /** Whether it is one; of options, case does not count. */
  static boolean isOne(String name) {
    return SessionProperties.isOfParquet(name);
  }

  /**
   * The names, sorted, of those settings that a session does not have, or has with other values.
   *
   * @param settings by names in any case; others than of keys do not count
   */
  static List<String> unlike(Map<String, String> settings, Configuration session) {
    return settings.entrySet().stream()
        .filter(setting -> isOne(setting.getKey()))
        .filter(setting -> !setting.getValue().equals(session.get(name(setting.getKey()))))
        .map(Map.Entry::getKey)
        .sorted()
        .toList();
  }

  /** The name in the case that it has in a Hadoop configuration. */
  static String name(String option) {
    return isOne(option) ? option.toLowerCase(Locale.ROOT) : option;
  }
}
