package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.function.IntSupplier;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.util.PropertyUtil;
import org.apache.spark.sql.SparkSession;

/**
 * How much is copied together: as a group ends with its slowest file, each core of the cluster
 * copies several of them; and no more, as a crash loses a group. While some cores have nothing left
 * to do for one group, they work on the next.
 *
 * @param cores how many the cluster has now
 * @param bytes at which a group is full; 0: as many as the cluster has cores for
 * @param files likewise
 * @param maxBytes that a group has at most, but for its last file
 * @param fileSize how many bytes a file of the table usually has
 * @param atOnce how many groups are copied at the same time
 */
record GroupSize(
    IntSupplier cores, long bytes, long files, long maxBytes, long fileSize, int atOnce) {
  private static final String FILES = "spark.iceberg-crypto.encrypt.files-per-group";
  private static final String BYTES = "spark.iceberg-crypto.encrypt.bytes-per-group";
  private static final String AT_ONCE = "spark.iceberg-crypto.encrypt.groups-at-once";
  private static final long USUALLY_AT_ONCE = 2;
  private static final long MOST_AT_ONCE = 64;
  private static final long LEAST_FILES = 2000;
  private static final long LEAST_BYTES = 16L << 30;
  private static final long MOST_FILES = 20_000; // whatever spark.default.parallelism is set to
  private static final long MOST_BYTES = 1L << 40;
  private static final long FILES_PER_CORE = 4;

  /** The size that fits the cluster, one group after another. */
  static GroupSize inTurn(SparkSession spark, Table table) {
    return new GroupSize(coresOf(spark), 0, 0, Long.MAX_VALUE, fileSize(table), 1);
  }

  /**
   * That of the session's settings, where it has some.
   *
   * @throws InvalidConfigurationException when one is not a number above zero
   */
  static GroupSize configured(SparkSession spark, Table table, long maxBytes) {
    return new GroupSize(
        coresOf(spark),
        setting(spark, BYTES, 0),
        setting(spark, FILES, 0),
        maxBytes,
        fileSize(table),
        (int) Math.min(MOST_AT_ONCE, setting(spark, AT_ONCE, USUALLY_AT_ONCE)));
  }

  private static IntSupplier coresOf(SparkSession spark) {
    return () -> spark.sparkContext().defaultParallelism();
  }

  private static long setting(SparkSession spark, String name, long otherwise) {
    String value = spark.conf().get(name, null);
    if (value == null) {
      return otherwise;
    }

    if (!value.trim().matches("[1-9]\\d{0,17}")) {
      throw new InvalidConfigurationException(
          String.format("%s is '%s'", name, value.trim()),
          "Nothing was changed. Set it to a number above zero, or leave it out.");
    }

    return Long.parseLong(value.trim());
  }

  /** How many bytes a file that a table's writers write usually has. */
  static long fileSize(Table table) {
    return PropertyUtil.propertyAsLong(
        table.properties(),
        TableProperties.WRITE_TARGET_FILE_SIZE_BYTES,
        TableProperties.WRITE_TARGET_FILE_SIZE_BYTES_DEFAULT);
  }

  /** Whether so many files, of so many bytes together, are a group. */
  boolean isFull(long groupBytes, int groupFiles) {
    long ofCluster = FILES_PER_CORE * cores.getAsInt(); // the cluster may grow
    long enoughFiles = files > 0 ? files : Math.min(MOST_FILES, Math.max(LEAST_FILES, ofCluster));
    long enoughBytes =
        bytes > 0 ? bytes : Math.min(MOST_BYTES, Math.max(LEAST_BYTES, ofCluster * fileSize));
    return groupFiles >= enoughFiles || groupBytes >= Math.min(maxBytes, enoughBytes);
  }
}
