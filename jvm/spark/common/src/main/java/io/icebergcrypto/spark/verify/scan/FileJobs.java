package io.icebergcrypto.spark.verify.scan;

import java.util.Arrays;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.expressions.Window;
import org.apache.spark.sql.expressions.WindowSpec;
import org.apache.spark.sql.functions;

/** How files are divided among Spark's tasks. */
public final class FileJobs {
  /** What a task takes on, so that it neither runs for long nor opens manifests for little. */
  private static final long MAX_PART_BYTES = 1L << 30;

  private static final long MIN_PART_BYTES = 64L << 20;
  private static final int MAX_PART_FILES = 1000;
  private static final int MAX_TASKS = 10_000;
  private static final String PART = "part";

  private final int cores;

  /** Divides among the session's cores. */
  public FileJobs(SparkSession spark) {
    this.cores = spark.sparkContext().defaultParallelism();
  }

  /**
   * How many files there are.
   *
   * @param files their number
   * @param bytes their length together
   */
  public record Size(long files, long bytes) {
    /** Counts files, and adds up their length. */
    public static Size of(Dataset<Row> files) {
      Row sums =
          files
              .agg(
                  functions.count("path"),
                  functions.coalesce(
                      functions.sum(functions.greatest(functions.col("length"), zero())), zero()))
              .first();
      return new Size(sums.getLong(0), sums.getLong(1));
    }

    /** What is left without others of them. */
    public Size minus(Size other) {
      return new Size(files - other.files, bytes - other.bytes);
    }

    private static Column zero() {
      return functions.lit(0L);
    }
  }

  /**
   * Each file once, with one manifest and one manifest list that lead to it: those of the newest
   * snapshot. Snapshots share manifests and files.
   *
   * @param files rows that begin with path, and of which the least one of a path is wanted
   */
  public Dataset<Row> distinct(Dataset<Row> files) {
    Column[] others =
        Arrays.stream(files.columns())
            .filter(name -> !name.equals("path"))
            .map(functions::col)
            .toArray(Column[]::new);
    return files
        .repartition(cores, functions.col("path"))
        .groupBy("path")
        .agg(functions.min(functions.struct(others)).as("first"))
        .select("path", "first.*");
  }

  /** Divides files evenly, wherever they are listed. */
  public Dataset<Row> spread(Dataset<Row> files, Size size) {
    long tasks = Math.max(cores, size.files() / MAX_PART_FILES + size.bytes() / MAX_PART_BYTES);
    return files.repartition((int) Math.min(tasks, MAX_TASKS), functions.col("path"));
  }

  /**
   * Divides files into parts of about the same bytes, of which each is listed in one place, and
   * gives each task some parts, one after the other.
   *
   * @param by the columns that tell where a file is listed
   */
  public Dataset<Row> parts(Dataset<Row> files, Size size, Column... by) {
    long partBytes =
        Math.min(MAX_PART_BYTES, Math.max(MIN_PART_BYTES, size.bytes() / (4L * cores)));
    long atLeast = partBytes / MAX_PART_FILES; // the work of opening a file, as bytes
    WindowSpec before =
        Window.partitionBy(by)
            .orderBy("path")
            .rowsBetween(Window.unboundedPreceding(), Window.currentRow());
    Column work = functions.greatest(functions.col("length"), functions.lit(atLeast));
    Column part = functions.floor(functions.sum(work).over(before).divide(partBytes)).cast("long");
    long tasks = 2 * ((size.bytes() + size.files() * atLeast) / partBytes + 1);
    Column[] byPart = Arrays.copyOf(by, by.length + 1);
    byPart[by.length] = functions.col(PART);
    return files
        .withColumn(PART, part)
        .repartition((int) Math.min(tasks, MAX_TASKS), byPart)
        .sortWithinPartitions(byPart);
  }
}
