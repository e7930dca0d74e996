package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.PropertyReader;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSession;

/**
 * Settings that come too late: Spark gives Hadoop what is below {@code spark.hadoop.} when it
 * starts. What a running session sets there, nobody reads.
 */
public final class LateSettings {
  private static final String PREFIX = "spark.hadoop.";

  private LateSettings() {}

  /**
   * Checks a session.
   *
   * @param concernsKeys of the name of a setting, without the prefix
   * @throws InvalidConfigurationException when it has such settings that Spark was started without
   */
  public static void check(SparkSession spark, Predicate<String> concernsKeys) {
    SparkConf started = spark.sparkContext().getConf();
    List<String> late =
        unlike(
            FromScala.map(spark.conf().getAll()),
            name -> isBelow(name) && concernsKeys.test(withoutPrefix(name)),
            name -> started.get(name, null));
    if (!late.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format("This session sets %s, which does nothing now", String.join(", ", late)),
          String.format(
              "Spark reads %s* only when it starts. Unset it, and set %s; for Hudi tables, which do"
                  + " not see a session's settings, restart Spark with it.",
              PREFIX, String.join(", ", late.stream().map(LateSettings::withoutPrefix).toList())));
    }
  }

  /**
   * The names, sorted, of those settings that are not in force, or are with other values.
   *
   * @param concerned of the name of a setting; the others do not count
   * @param inForce the value of a setting; null: it has none
   */
  public static List<String> unlike(
      Map<String, String> settings, Predicate<String> concerned, UnaryOperator<String> inForce) {
    return settings.entrySet().stream()
        .filter(setting -> concerned.test(setting.getKey()))
        .filter(setting -> !Objects.equals(setting.getValue(), inForce.apply(setting.getKey())))
        .map(Map.Entry::getKey)
        .sorted()
        .toList();
  }

  /** Whether it is the name of a setting that Spark reads when it starts. */
  static boolean isBelow(String name) {
    return PropertyReader.isBelow(name, PREFIX);
  }

  /** The name under which Hadoop has it. */
  static String withoutPrefix(String name) {
    return isBelow(name) ? name.substring(PREFIX.length()) : name;
  }
}
