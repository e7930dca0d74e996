package io.icebergcrypto.spark.verify.scan;

import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BinaryOperator;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;

/**
 * Files as rows that begin with their path: a DataFrame of Spark's or, when they are few, rows that
 * the driver holds. Spark needs a second for the jobs of a table of three files, and no time to
 * read these.
 */
public final class FileSet {
  private static final String PATH = "path";

  /** By where files are listed, and then by path. */
  private static final Comparator<Row> ORDER = FileSet::compare;

  private final SparkSession spark;
  private final StructType schema;
  private final Dataset<Row> many;
  private final List<Row> few;

  private FileSet(SparkSession spark, StructType schema, Dataset<Row> many, List<Row> few) {
    this.spark = spark;
    this.schema = schema;
    this.many = many;
    this.few = few;
  }

  /**
   * How many files there are.
   *
   * @param files their number
   * @param bytes their length together
   */
  public record Size(long files, long bytes) {
    /** What is left without others of them. */
    public Size minus(Size other) {
      // of a stream, what lists it may give the length of its content
      return new Size(files - other.files, Math.max(bytes - other.bytes, 0));
    }
  }

  /** Files that Spark holds. */
  public static FileSet of(Dataset<Row> rows) {
    return new FileSet(rows.sparkSession(), rows.schema(), rows, null);
  }

  /** Files that the driver holds. */
  public static FileSet few(SparkSession spark, List<Row> rows, StructType schema) {
    return new FileSet(spark, schema, null, rows);
  }

  private FileSet few(List<Row> rows) {
    return few(spark, rows, schema);
  }

  /** Whether it has no file. */
  public boolean isEmpty() {
    return isFew() ? few.isEmpty() : many.isEmpty();
  }

  /** Whether the driver holds them. */
  boolean isFew() {
    return few != null;
  }

  /** The rows that the driver holds; null when it does not. */
  List<Row> few() {
    return few;
  }

  SparkSession spark() {
    return spark;
  }

  /** The files as Spark has them. */
  public Dataset<Row> rows() {
    return isFew() ? spark.createDataFrame(few, schema) : many;
  }

  /**
   * Those for which a condition holds.
   *
   * @param same the condition in Java
   */
  public FileSet where(Column condition, Predicate<Row> same) {
    return isFew() ? few(few.stream().filter(same).toList()) : of(many.where(condition));
  }

  /** Those for which a condition holds: Spark finds these without a job when they are few. */
  public FileSet where(Column condition) {
    Dataset<Row> found = rows().where(condition);
    return isFew() ? few(found.collectAsList()) : of(found);
  }

  StructType schema() {
    return schema;
  }

  /** The place of a column in rows. */
  int place(String column) {
    return schema.fieldIndex(column);
  }

  /** Those of which others have the path with the same value in a column; null is like no other. */
  public FileSet alike(FileSet others, String column) {
    if (!isFew() || !others.isFew()) {
      String[] both = {PATH, column};
      return of(rows().join(others.rows().select(PATH, column), both, "left_semi"))
          .select(schema.fieldNames()); // the join puts both first
    }

    int mine = place(column);
    int theirs = others.place(column);
    Map<String, Object> values = new HashMap<>();
    others.few.forEach(row -> values.put(row.getString(0), row.get(theirs)));
    return few(
        few.stream()
            .filter(row -> !row.isNullAt(mine))
            .filter(row -> row.get(mine).equals(values.get(row.getString(0))))
            .toList());
  }

  /**
   * Those whose paths others have, or have not.
   *
   * @param others rows that begin with a path, too
   */
  public FileSet among(FileSet others, boolean wanted) {
    if (isFew() && others.isFew()) {
      Set<String> paths =
          others.few.stream().map(row -> row.getString(0)).collect(Collectors.toSet());
      return few(few.stream().filter(row -> paths.contains(row.getString(0)) == wanted).toList());
    }

    return of(rows().join(others.rows().select(PATH), PATH, wanted ? "left_semi" : "left_anti"));
  }

  /** All files of sets that have the same columns: on the driver, if it holds all of them. */
  public static FileSet all(List<FileSet> sets) {
    List<Row> few = sets.stream().filter(FileSet::isFew).flatMap(set -> set.few.stream()).toList();
    return sets.stream()
        .filter(set -> !set.isFew())
        .reduce(sets.get(0).few(few), (all, set) -> of(all.rows().union(set.rows())));
  }

  /** The same, independent of what it was made of. */
  public FileSet computed() {
    return isFew() ? this : of(many.localCheckpoint(true));
  }

  /** Some of the columns. */
  public FileSet select(String... columns) {
    if (!isFew()) {
      return of(many.select(Stream.of(columns).map(functions::col).toArray(Column[]::new)));
    }

    int[] places = Stream.of(columns).mapToInt(schema::fieldIndex).toArray();
    StructType selected =
        new StructType(Stream.of(columns).map(schema::apply).toArray(StructField[]::new));
    return few(spark, few.stream().map(row -> select(row, places)).toList(), selected);
  }

  private static Row select(Row row, int[] places) {
    return RowFactory.create(IntStream.of(places).mapToObj(row::get).toArray());
  }

  /** Keeps what Spark holds until it is released. */
  public FileSet persist() {
    return isFew() ? this : of(many.persist(StorageLevel.MEMORY_AND_DISK()));
  }

  /** Lets go of what {@link #persist} keeps. */
  public void release() {
    if (!isFew()) {
      many.unpersist();
    }
  }

  /**
   * Each file once, as the least of its rows: with one manifest and one manifest list that lead to
   * it, those of the newest snapshot. Snapshots share manifests and files.
   */
  public FileSet distinct() {
    if (isFew()) {
      Map<String, Row> least = new HashMap<>();
      few.forEach(row -> least.merge(row.getString(0), row, BinaryOperator.minBy(ORDER)));
      return few(least.values().stream().sorted(ORDER).toList());
    }

    Column[] others =
        Stream.of(schema.fieldNames())
            .filter(name -> !name.equals(PATH))
            .map(functions::col)
            .toArray(Column[]::new);
    return of(
        many.repartition(spark.sparkContext().defaultParallelism(), functions.col(PATH))
            .groupBy(PATH)
            .agg(functions.min(functions.struct(others)).as("first"))
            .select(PATH, "first.*"));
  }

  /** Counts the files, and adds up their length. */
  public Size size() {
    if (isFew()) {
      int length = schema.fieldIndex("length");
      return new Size(
          few.size(), few.stream().mapToLong(row -> Math.max(row.getLong(length), 0)).sum());
    }

    Column zero = functions.lit(0L);
    Row sums =
        many.agg(
                functions.count(PATH),
                functions.coalesce(
                    functions.sum(functions.greatest(functions.col("length"), zero)), zero))
            .first();
    return new Size(sums.getLong(0), sums.getLong(1));
  }

  /** As Spark compares structs: field by field, null first; the path comes last. */
  @SuppressWarnings({"unchecked", "rawtypes"}) // strings, numbers and booleans
  private static int compare(Row a, Row b) {
    Comparator<Comparable> order = Comparator.nullsFirst(Comparator.naturalOrder());
    int result = 0;
    for (int i = 1; i < a.size() && result == 0; i++) {
      result = order.compare((Comparable) a.get(i), (Comparable) b.get(i));
    }

    return result == 0 ? order.compare(a.getString(0), b.getString(0)) : result;
  }
}
