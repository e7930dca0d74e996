package io.icebergcrypto.parquet.tables;

import io.icebergcrypto.PlaintextException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;

/**
 * Programs that write Parquet files by the same settings as Spark, and keep values beside them. No
 * setting tells which one writes a file, but its code has called Parquet's.
 */
public enum TableFormat {
  HUDI("Hudi", "org.apache.hudi.", "org.apache.spark.sql.hudi."),
  DELTA("Delta", "org.apache.spark.sql.delta."),
  /** Delta's own library beneath other engines, which knows no session of Spark's. */
  DELTA_KERNEL("Delta Kernel", "io.delta."),
  /** In plaintext tables: the files of encrypted ones get their keys otherwise. */
  ICEBERG("Iceberg", "org.apache.iceberg."),
  PAIMON("Paimon", "org.apache.paimon."),
  /** In Hive itself, and in Spark's statements that leave the writing to Hive's code. */
  HIVE("Hive's own writer", "org.apache.hadoop.hive.ql.io.parquet.");

  /** Code that reads data files in order to repeat their values elsewhere. */
  private static final Map<String, TableFormat> REPEATING =
      Map.of(
          "org.apache.hudi.metadata.", HUDI,
          "org.apache.hudi.client.utils.SparkMetadataWriterUtils", HUDI,
          "org.apache.spark.sql.delta.stats.StatsCollectionUtils", DELTA,
          "org.apache.spark.sql.delta.stats.StatsCollector", DELTA);

  private final String label;
  private final List<String> prefixes;

  TableFormat(String label, String... prefixes) {
    this.label = label;
    this.prefixes = List.of(prefixes);
  }

  /** Its name for people. */
  public String label() {
    return label;
  }

  /** Whether a class is its own. */
  public boolean owns(String className) {
    return prefixes.stream().anyMatch(className::startsWith);
  }

  /** The one that calls, on this thread; none: Spark itself, or a program of the user's. */
  public static Optional<TableFormat> calling() {
    return first(name -> Arrays.stream(values()).filter(format -> format.owns(name)));
  }

  /** The one that calls, on this thread, in order to repeat values elsewhere. */
  static Optional<TableFormat> repeating() {
    return first(TableFormat::repeating);
  }

  private static Optional<TableFormat> first(Function<String, Stream<TableFormat>> ofClass) {
    return StackWalker.getInstance()
        .walk(
            frames ->
                frames.map(StackWalker.StackFrame::getClassName).flatMap(ofClass).findFirst());
  }

  private static Stream<TableFormat> repeating(String className) {
    return REPEATING.entrySet().stream()
        .filter(code -> className.startsWith(code.getKey()))
        .map(Map.Entry::getValue);
  }

  /**
   * Refuses to give a key to code that reads a file in order to repeat its values, or keys of
   * records, in plaintext: in an index of Hudi's metadata table, or in Delta's log.
   *
   * @param hudiPlaintext whether Hudi may
   * @throws PlaintextException when such code calls
   */
  public static void checkRead(Path file, boolean hudiPlaintext) {
    repeating()
        .ifPresent(
            format -> {
              if (format != HUDI) {
                throw DeltaStatistics.repeated(file);
              }

              HudiTable.checkPlaintext(
                  hudiPlaintext,
                  "of " + file,
                  List.of("what an index in the metadata table repeats of it"));
            });
  }
}
