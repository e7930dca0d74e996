package io.icebergcrypto.spark;

import io.icebergcrypto.format.Json;
import io.icebergcrypto.format.Sha256;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.SparkSession;
import scala.Option;

/**
 * What a driver tells its tasks of settings: hashes, in properties of the thread that starts a job,
 * which Spark sends along. Settings of sessions cannot replace them: Spark sends only those along
 * whose names begin with {@code spark}.
 */
final class TaskApprovals {
  /** Settings of KMSs that the driver has checked, the last ones. */
  private static final String KMS = "iceberg-crypto.checked-kms";

  /** The settings of files of the session that this thread works for, each with its name. */
  private static final String FILES = "iceberg-crypto.settings-of-files";

  private static final int MOST = 16;

  private TaskApprovals() {}

  /** Lets the jobs that this thread of a driver starts use a KMS. */
  static void addKms(Map<String, String> settings) {
    SparkContext spark = spark();
    if (spark != null) {
      List<String> hashes = new ArrayList<>(split(spark.getLocalProperty(KMS)));
      String hash = hash(settings);
      hashes.remove(hash);
      hashes.add(hash);
      int first = Math.max(0, hashes.size() - MOST);
      spark.setLocalProperty(KMS, String.join(",", hashes.subList(first, hashes.size())));
    }
  }

  /** Whether the driver of this task has checked these settings of a KMS. */
  static boolean haveKms(Map<String, String> settings) {
    return split(property(KMS)).contains(hash(settings));
  }

  /** Tells the jobs that this thread of a driver starts which settings of files they have. */
  static void setFiles(Map<String, String> settings) {
    SparkContext spark = spark();
    if (spark != null) {
      spark.setLocalProperty(FILES, String.join(",", hashes(settings).values()));
    }
  }

  /**
   * The names of those settings of files that the session of this task does not have; a text if it
   * has more. Nothing, if its driver told of none.
   */
  static Optional<Set<String>> unlikeFiles(Map<String, String> settings) {
    String told = property(FILES);
    if (told == null) {
      return Optional.empty();
    }

    Map<String, String> differ = new TreeMap<>(hashes(settings));
    Set<String> missing = new TreeSet<>(split(told));
    missing.removeAll(differ.values());
    differ.values().removeAll(split(told));
    if (differ.isEmpty() && !missing.isEmpty()) {
      return Optional.of(Set.of("some are not there"));
    }

    return Optional.of(differ.keySet());
  }

  private static Map<String, String> hashes(Map<String, String> settings) {
    Map<String, String> hashes = new TreeMap<>();
    settings.forEach((name, value) -> hashes.put(name, hash(Map.of(name, value))));
    return hashes;
  }

  private static String hash(Map<String, String> settings) {
    String json = Json.of(new TreeMap<>(settings));
    return Sha256.hex(json.getBytes(StandardCharsets.UTF_8));
  }

  private static List<String> split(String property) {
    return property == null || property.isEmpty() ? List.of() : List.of(property.split(","));
  }

  private static String property(String name) {
    if (TaskContext.get() != null) {
      return TaskContext.get().getLocalProperty(name);
    }

    SparkContext spark = spark();
    return spark == null ? null : spark.getLocalProperty(name);
  }

  private static SparkContext spark() {
    Option<SparkSession> active = SparkSession.getActiveSession();
    Option<SparkSession> session = active.isDefined() ? active : SparkSession.getDefaultSession();
    return session.isDefined() ? session.get().sparkContext() : null;
  }
}
