package io.icebergcrypto.parquet.tables;

import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.SessionProperties;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;

/**
 * Delta writes the smallest and largest values of columns into its log, in plaintext JSON. It hands
 * the properties of a table and what the session sets to Parquet, so a write tells of which
 * columns.
 */
public final class DeltaStatistics {
  /** Whether a session has any. */
  public static final String COLLECT = "spark.databricks.delta.stats.collect";

  /** Properties of a table: which columns it has statistics of, or of how many. */
  public static final String COLUMNS = "delta.dataSkippingStatsColumns";

  public static final String COUNT = "delta.dataSkippingNumIndexedCols";

  private static final String EXTENSIONS = "spark.sql.extensions";

  /** Properties of a table with which the names of folders do not say how it is partitioned. */
  private static final String RANDOM_NAMES = "delta.randomizeFilePrefixes";

  private static final String OTHER_NAMES = "delta.columnMapping.mode";

  /** Settings of a session that these checks read. */
  private static final List<String> OF_SESSION = List.of(COLLECT, EXTENSIONS);

  private DeltaStatistics() {}

  /** Whether a setting decides on keys and statistics: Delta would take it from its log, too. */
  public static boolean decides(String name) {
    return OF_SESSION.contains(name.toLowerCase(Locale.ROOT))
        || SessionProperties.isOfParquet(name);
  }

  /** Those settings of a configuration. */
  public static Map<String, String> deciding(Configuration hadoop) {
    Map<String, String> found = new TreeMap<>();
    for (Map.Entry<String, String> setting : hadoop) {
      if (decides(setting.getKey())) {
        found.put(setting.getKey(), setting.getValue());
      }
    }

    return found;
  }

  /**
   * Checks a write of Delta's.
   *
   * @param hadoop as Delta gives it to a file
   * @param checks the extension of Spark SQL that refuses a table's properties for a session, where
   *     they do nothing
   * @throws PlaintextException when values of columns with keys would be in the log, or might be
   */
  public static void checkWrite(
      Path file, ColumnChoices chosen, Configuration hadoop, String checks) {
    checkPartitions(file, chosen, hadoop);
    if (isOff(hadoop)) {
      return;
    }

    String columns = hadoop.get(COLUMNS);
    String found;
    if (!hadoop.getTrimmed(EXTENSIONS, "").contains(checks)) {
      found = "of columns with keys, as far as this can tell without " + checks;
    } else if (columns == null) {
      found = "0".equals(hadoop.getTrimmed(COUNT)) ? null : "of columns with keys";
    } else {
      found = encrypted(columns, chosen);
    }

    if (found != null) {
      throw new PlaintextException(
          String.format(
              "Delta would write the smallest and largest values %s into its log, in plaintext,"
                  + " for %s",
              found, file),
          String.format(
              "Set %s=false for the session, or, with spark.sql.extensions=%s, the table property"
                  + " '%s'='0'. Nothing was written.",
              COLLECT, checks, COUNT));
    }
  }

  /**
   * Delta repeats the columns that a table is partitioned by in its files, so these tell nothing.
   */
  private static void checkPartitions(Path file, ColumnChoices chosen, Configuration hadoop) {
    boolean unknown =
        "true".equalsIgnoreCase(hadoop.getTrimmed(RANDOM_NAMES))
            || !"none".equalsIgnoreCase(hadoop.getTrimmed(OTHER_NAMES, "none"));
    if (unknown) {
      throw new PlaintextException(
          String.format(
              "It cannot be determined whether the table of %s is partitioned by a column with a"
                  + " key, whose values would be in Delta's log",
              file),
          String.format(
              "Write it into a table without %s and %s. Nothing was written.",
              RANDOM_NAMES, OTHER_NAMES));
    }

    for (Path folder = file; folder != null; folder = folder.getParent()) {
      String column =
          ExternalCatalogUtils.unescapePathName(folder.getName().replaceFirst("=.*", ""));
      if (folder.getName().contains("=") && chosen.key(column) != null) {
        throw new PlaintextException(
            String.format(
                "Values of column '%s', which has key '%s', would be in the name of a folder and in"
                    + " Delta's log: %s",
                column, chosen.key(column), file),
            "Partition the table by other columns. Nothing was written.");
      }
    }
  }

  /** The refusal of reading a file, as DELETE does if deletion vectors are on. */
  static PlaintextException repeated(Path file) {
    return new PlaintextException(
        String.format(
            "Delta reads the smallest and largest values of %s, to write them into its log, in"
                + " plaintext",
            file),
        "Delta does so where it deletes rows by deletion vectors from files that were written"
            + " without statistics: set the table property 'delta.enableDeletionVectors'='false'."
            + " For CONVERT TO DELTA, write NO STATISTICS. Nothing was changed.");
  }

  /** Whether a session has no statistics at all. */
  public static boolean isOff(Configuration hadoop) {
    return "false".equalsIgnoreCase(hadoop.getTrimmed(COLLECT));
  }

  private static String encrypted(String columns, ColumnChoices chosen) {
    List<String> found =
        Arrays.stream(columns.split(","))
            .map(String::trim)
            .filter(name -> !name.isEmpty())
            .filter(name -> name.contains("`") || chosen.encrypts(name))
            .toList();
    return found.isEmpty() ? null : "of columns with keys (" + String.join(", ", found) + ")";
  }
}
