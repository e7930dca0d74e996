package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.spark.verify.scan.FileSet.Size;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.expressions.Window;
import org.apache.spark.sql.expressions.WindowSpec;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructType;

/**
 * Where files are checked: in the driver if they are few, or in Spark's tasks; and how these divide
 * them.
 */
public final class FileJobs {
  /** What a task takes on, so that it neither runs for long nor opens manifests for little. */
  private static final long MAX_PART_BYTES = 1L << 30;

  private static final long MIN_PART_BYTES = 64L << 20;
  private static final int MAX_PART_FILES = 1000;
  private static final int MAX_TASKS = 10_000;
  private static final String PART = "part";

  /** How many files the driver checks by itself, and how many rows of each it holds. */
  private static final String FEW = "spark.iceberg-crypto.verify.files-on-driver";

  private static final String FEW_DEFAULT = "50";
  private static final int FOUND_BY_ONE = 20;

  private final int cores;
  private final int few;

  /** Divides among the session's cores. */
  public FileJobs(SparkSession spark) {
    this.cores = spark.sparkContext().defaultParallelism();
    this.few = few(spark);
  }

  /** How many files the driver reads by itself, as a job would take longer. */
  static int few(SparkSession spark) {
    String value = spark.conf().get(FEW, FEW_DEFAULT);
    try {
      return Integer.parseUnsignedInt(value);
    } catch (NumberFormatException e) {
      throw new InvalidConfigurationException(
          FEW + " is '" + value + "', which is not a number of files",
          "Give 0, for Spark jobs only, or a small number such as " + FEW_DEFAULT + ".");
    }
  }

  /**
   * Checks files on the driver, if the driver holds them and they are few; else by Spark's jobs.
   *
   * @param read how many files are read, and how much of them
   * @param here the check
   * @param byJobs the outcomes when Spark's tasks check
   * @param schema of the outcomes
   */
  public FileSet check(
      FileSet files,
      Size read,
      UnaryOperator<Iterator<Row>> here,
      Supplier<Dataset<Row>> byJobs,
      StructType schema) {
    FileSet found = checkOrNull(files, read, here, schema);
    return found == null ? FileSet.of(byJobs.get()) : found;
  }

  /** The same, if the driver does it; null when Spark's jobs are to. */
  public FileSet checkOrNull(
      FileSet files, Size read, UnaryOperator<Iterator<Row>> here, StructType schema) {
    boolean isLittle = read.files() <= few && read.bytes() <= MIN_PART_BYTES;
    List<Row> found =
        files.isFew() && isLittle ? foundOrNull(here.apply(files.few().iterator())) : null;
    return found == null ? null : FileSet.few(files.spark(), found, schema);
  }

  /** How many rows the driver holds, if it reads so many files. */
  static int fewFound(int few) {
    return few * FOUND_BY_ONE;
  }

  /** Null when the driver would have to hold many files. */
  private List<Row> foundOrNull(Iterator<Row> rows) {
    List<Row> found = new ArrayList<>();
    Closeable opened = rows instanceof Closeable closeable ? closeable : () -> {};
    try (opened) {
      while (rows.hasNext() && found.size() <= fewFound(few)) {
        found.add(rows.next());
      }

      return rows.hasNext() ? null : found;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
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
