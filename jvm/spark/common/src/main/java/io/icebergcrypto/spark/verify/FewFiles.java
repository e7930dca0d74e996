package io.icebergcrypto.spark.verify;

import io.icebergcrypto.spark.verify.scan.FileJobs.Size;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * The files of one level of a table's tree while they are few. Each level is then one job without a
 * shuffle, and the rows are here: to divide, cache and aggregate them with Spark takes many times
 * as long as to check them.
 */
final class FewFiles {
  /** How many files, and files below them, are few. */
  static final int MOST = 200;

  /** More bytes are divided by bytes. */
  private static final long MOST_BYTES = 64L << 20;

  /** Files that are listed in one place are neighbours. */
  private static final Comparator<Row> BY_PLACE =
      Comparator.comparing(FileRow::list)
          .thenComparing(FileRow::manifest, Comparator.nullsFirst(Comparator.naturalOrder()))
          .thenComparing(FileRow::path);

  private final SparkSession spark;
  private final int most;

  /**
   * Checks with the session's executors.
   *
   * @param most how many are few
   */
  FewFiles(SparkSession spark, int most) {
    this.spark = spark;
    this.most = most;
  }

  /** Whether files are few. */
  boolean are(List<Row> files) {
    return files.size() <= most && size(files).bytes() <= MOST_BYTES;
  }

  /** How many files there are. */
  static Size size(List<Row> files) {
    return new Size(
        files.size(), files.stream().mapToLong(file -> Math.max(FileRow.length(file), 0)).sum());
  }

  /**
   * Checks files.
   *
   * @return what was found; null when there is more than a few below them
   */
  List<Row> checkedOrNull(List<Row> files, MapPartitionsFunction<Row, Row> task) {
    int enough = most + 1;
    MapPartitionsFunction<Row, Row> first = rows -> new First(task.call(rows), enough);
    List<Row> found =
        spark
            .createDataFrame(files.stream().sorted(BY_PLACE).toList(), FileRow.REACHED)
            .withColumn("part", functions.lit(0L))
            .mapPartitions(first, Encoders.row(FileRow.CHECKED))
            .collectAsList();
    return found.size() > most ? null : found;
  }

  /** The files that were found below others, each path once, as of the first place. */
  static List<Row> below(List<Row> found) {
    Map<String, Row> byPath = new TreeMap<>();
    found.stream()
        .filter(FileRow::isBelow)
        .map(FileRow::reached)
        .sorted(Comparator.comparing(FileRow::isOlder).thenComparing(BY_PLACE))
        .forEach(file -> byPath.putIfAbsent(FileRow.path(file), file));
    return new ArrayList<>(byPath.values());
  }

  /** The first of a task's rows. */
  private static final class First implements Iterator<Row> {
    private final Iterator<Row> rows;
    private int left;

    private First(Iterator<Row> rows, int most) {
      this.rows = rows;
      this.left = most;
    }

    @Override
    public boolean hasNext() {
      return left > 0 && rows.hasNext();
    }

    @Override
    public Row next() {
      if (left == 0) {
        throw new NoSuchElementException();
      }

      this.left--;
      return rows.next();
    }
  }
}
