package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.PropertyReader;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
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
    Set<String> late = new TreeSet<>();
    FromScala.map(spark.conf().getAll())
        .forEach(
            (name, value) -> {
              if (isBelow(name)
                  && concernsKeys.test(withoutPrefix(name))
                  && !value.equals(started.get(name, null))) {
                late.add(name);
              }
            });
    if (!late.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format("This session sets %s, which does nothing now", String.join(", ", late)),
          String.format(
              "Spark reads %s* only when it starts. Unset it, and set %s; for Hudi tables, which do"
                  + " not see a session's settings, restart Spark with it.",
              PREFIX, String.join(", ", late.stream().map(LateSettings::withoutPrefix).toList())));
    }
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
