package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.EarlierReport;
import io.icebergcrypto.audit.RecordIndex;
import io.icebergcrypto.format.Sha256;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.TableMetadata;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Outcomes of data and delete files in a folder: what was found right there before is not checked
 * again, as these files do not change. Each task's outcomes are there when it ends, so a run that
 * was stopped continues where it was. A run that ends writes all files that it counts as right to a
 * record of its own, and before that what it found wrong to another place, which every later run
 * reads. The folder holds paths and outcomes, no keys. Who writes to it can make a file pass as
 * checked, until a signed report has the hash of a record's index: then only the files of that
 * record count. Nobody can make a file pass by what is recorded as wrong, signed or not: it is
 * checked again.
 *
 * <p>Files are JSON, a line for each outcome, compressed: their bytes are hashed and read at once,
 * so nobody can exchange them in between.
 */
public final class RecordedFiles {
  /** Whether a file that was right was also found wrong, or could not be read since. */
  public static final Column SUSPECT = functions.col("suspect");

  private static final Logger LOG = LoggerFactory.getLogger(RecordedFiles.class);

  /** What tasks found; in each of these, a run has a folder. */
  private static final String OUTCOMES = "outcomes";

  private static final String RECORDS = "records";
  private static final String PROBLEMS = "problems";
  private static final int MAX_FILES = 10_000;
  private static final long ROWS_IN_FILE = 100_000;

  /** What a task reads, and what the driver does. */
  private static final long TASK_BYTES = 64L << 20;

  private static final long DRIVER_BYTES = 1L << 18;
  private static final String PATH = "path";
  private static final String RUN = "run";

  /** Whether an outcome was taken over when no signed report vouched for it. */
  private static final String UNSIGNED = "unsigned";

  private static final String VERSION = "version";
  private static final Column NO = functions.lit(false);
  private static final StructType HASHED =
      new StructType()
          .add("name", DataTypes.StringType)
          .add("sha256", DataTypes.StringType)
          .add("lines", DataTypes.LongType);
  private static final Column IS_RIGHT = functions.col("problem").isNull();

  private final SparkSession spark;
  private final int few;
  private final StructType rows;
  private final RecordFolder folder;
  private final String run = UUID.randomUUID().toString();
  private final Instant begun = Instant.now().truncatedTo(ChronoUnit.MILLIS);
  private final boolean isSigned;
  private final FileSet right;

  private RecordedFiles(
      SparkSession spark,
      int few,
      StructType rows,
      RecordFolder folder,
      EarlierReport.Recorded signed)
      throws IOException {
    this.spark = spark;
    this.few = few;
    this.rows =
        rows.add(RUN, DataTypes.LongType, false)
            .add(UNSIGNED, DataTypes.BooleanType, false)
            .add(VERSION, DataTypes.StringType, false);
    this.folder = folder;
    this.isSigned = signed != null;
    Map<String, Long> outcomes = outcomesOfStoppedRuns();
    FileSet wrong = rows(concat(outcomes, folder.filesOfRuns(PROBLEMS)), null);
    FileSet known =
        isSigned ? signed(signed) : rows(concat(outcomes, folder.filesOfRuns(RECORDS)), null);
    this.right = suspected(right(known), wrong(wrong));
  }

  /**
   * Opens the folder of a table and a depth, or begins one.
   *
   * @param folder where outcomes are recorded
   * @param name the table's
   * @param rows what outcomes are; with path, entry and problem
   * @param signed what a signed report says of the outcomes that count; null: all that are there do
   * @throws InvalidConfigurationException when it is the folder of another table or depth, or of
   *     something else, or has not what was signed
   * @throws IcebergCryptoException when the storage fails
   */
  public static RecordedFiles open(
      SparkSession spark,
      String folder,
      String name,
      TableMetadata metadata,
      String depth,
      StructType rows,
      EarlierReport.Recorded signed) {
    Configuration hadoop = spark.sessionState().newHadoopConf();
    RecordPlace place = new RecordPlace(folder, name, metadata.uuid(), metadata.location(), depth);
    return open(spark, FileJobs.few(spark), hadoop, place, rows, signed);
  }

  /** The same; the driver reads and writes a few files without the session. */
  static RecordedFiles open(
      SparkSession spark,
      int few,
      Configuration hadoop,
      RecordPlace place,
      StructType rows,
      EarlierReport.Recorded signed) {
    try {
      boolean isToBegin = signed == null || signed.equals(EarlierReport.Recorded.NONE);
      return new RecordedFiles(spark, few, rows, place.folder(hadoop, isToBegin), signed);
    } catch (IOException | UncheckedIOException | IllegalArgumentException e) {
      // the latter is for what is not a URI, or not what was written
      throw new IcebergCryptoException(
              String.format(
                  "the folder %s cannot be used to resume: %s", place.location(), e.getMessage()),
              "Check the URI, and that Spark may read and write there.",
              e)
          .inTable(place.table());
    }
  }

  /**
   * Those of runs that have no record; those of others are deleted. Files of runs that go on are
   * among them: a task's are whole, or not there.
   */
  private Map<String, Long> outcomesOfStoppedRuns() throws IOException {
    Set<String> indexes = Set.copyOf(folder.listed(""));
    Map<String, Long> files = new TreeMap<>();
    for (String of : folder.listed(OUTCOMES)) {
      if (indexes.contains(indexOf(of))) {
        delete(OUTCOMES + "/" + of);
      } else {
        files.putAll(folder.files(OUTCOMES + "/" + of));
      }
    }

    return files;
  }

  /** Storage that nothing may be deleted in has more files, that is all. */
  private void delete(String needless) {
    try {
      folder.delete(needless);
    } catch (IOException e) {
      LOG.debug("{} was not deleted", needless, e);
    }
  }

  private static String indexOf(String run) {
    return "_record-" + run + ".json";
  }

  private static Map<String, Long> concat(Map<String, Long> some, Map<String, Long> others) {
    Map<String, Long> all = new TreeMap<>(some);
    all.putAll(others);
    return all;
  }

  /** The record whose index was signed. */
  private FileSet signed(EarlierReport.Recorded signed) throws IOException {
    if (signed.equals(EarlierReport.Recorded.NONE)) {
      return rows(Map.of(), Map.of());
    }

    byte[] stored;
    try {
      stored = folder.read(signed.index(), RecordIndex.MAX_BYTES);
    } catch (FileNotFoundException e) {
      throw RecordIndex.missing(folder.location(), "its index");
    }

    RecordIndex index = RecordIndex.read(stored, signed.sha256(), folder.location());
    Map<String, Long> found = folder.filesOfRuns(RECORDS);
    index.require(found.keySet(), folder.location());
    found.keySet().retainAll(index.files().keySet());
    return rows(found, new HashMap<>(index.files()));
  }

  /**
   * The outcomes in files.
   *
   * @param files their lengths, by name
   * @param signed the hashes that they must have; null: any bytes will do
   */
  private FileSet rows(Map<String, Long> files, Map<String, String> signed) {
    long bytes = files.values().stream().mapToLong(Long::longValue).sum();
    boolean isLittle = files.isEmpty() || files.size() <= few && bytes <= DRIVER_BYTES;
    List<Row> some = isLittle ? fewOrNull(files.keySet(), signed) : null;
    if (some != null) {
      return FileSet.few(spark, some, rows);
    }

    RecordFolder from = folder;
    StructType schema = rows;
    FlatMapFunction<String, Row> read = name -> JsonLines.rows(from.outcomes(name, signed), schema);
    return FileSet.of(named(files.keySet(), bytes).flatMap(read, Encoders.row(schema)));
  }

  private List<Row> fewOrNull(Set<String> names, Map<String, String> signed) {
    int most = FileJobs.fewFound(few);
    List<Row> all = new ArrayList<>();
    for (String name : names) {
      byte[] content = folder.outcomes(name, signed);
      List<Row> some;
      try {
        some = JsonLines.fewOrNull(content, rows, most - all.size());
      } catch (RuntimeException e) {
        throw new IllegalArgumentException(name + " is not what a verification wrote", e);
      }

      if (some == null) {
        return null;
      }

      all.addAll(some);
    }

    return all;
  }

  /** The names of files, divided among tasks. */
  private Dataset<String> named(Set<String> names, long bytes) {
    List<String> all = List.copyOf(names);
    long tasks = Math.max(spark.sparkContext().defaultParallelism(), bytes / TASK_BYTES);
    MapFunction<Long, String> name = place -> all.get(place.intValue());
    return spark
        .range(0, all.size(), 1, (int) Math.min(tasks, all.size()))
        .as(Encoders.LONG())
        .map(name, Encoders.STRING());
  }

  private static FileSet right(FileSet outcomes) {
    int problem = outcomes.place("problem");
    return outcomes.where(IS_RIGHT, row -> row.isNullAt(problem));
  }

  private static FileSet wrong(FileSet outcomes) {
    int problem = outcomes.place("problem");
    return outcomes.where(functions.not(IS_RIGHT), row -> !row.isNullAt(problem));
  }

  /**
   * Each file once, as it was last found right. What is wrong was wrong whoever says so, and
   * whenever; what could not be read was read if it was right later.
   */
  private FileSet suspected(FileSet known, FileSet wrong) {
    return known.isFew() && wrong.isFew()
        ? suspectedFew(known.few(), wrong.few())
        : FileSet.of(suspected(known.rows(), wrong.rows()));
  }

  private FileSet suspectedFew(List<Row> known, List<Row> wrong) {
    int run = rows.fieldIndex(RUN);
    int code = rows.fieldIndex("code");
    Map<String, Long> until = new HashMap<>();
    for (Row row : wrong) {
      boolean isUnchecked = Tally.isUnchecked(row.getString(code));
      until.merge(row.getString(0), isUnchecked ? row.getLong(run) : Long.MAX_VALUE, Math::max);
    }

    Map<String, Row> last = new LinkedHashMap<>();
    for (Row row : known) {
      last.merge(row.getString(0), row, (a, b) -> a.getLong(run) > b.getLong(run) ? a : b);
    }

    List<Row> all = new ArrayList<>();
    for (Row row : last.values()) {
      long wrongUntil = until.getOrDefault(row.getString(0), Long.MIN_VALUE);
      all.add(with(row, wrongUntil >= row.getLong(run)));
    }

    return FileSet.few(spark, all, rows.add("suspect", DataTypes.BooleanType));
  }

  private static Row with(Row row, Object... more) {
    return RowFactory.create(Stream.concat(values(row), Stream.of(more)).toArray());
  }

  private static Stream<Object> values(Row row) {
    return Stream.iterate(0, i -> i < row.size(), i -> i + 1).map(row::get);
  }

  private static Dataset<Row> suspected(Dataset<Row> known, Dataset<Row> wrong) {
    Column run = functions.col(RUN);
    Column until = functions.when(Tally.UNCHECKED, run).otherwise(Long.MAX_VALUE);
    Dataset<Row> suspects = wrong.groupBy(PATH).agg(functions.max(until).as("until"));
    Column[] others =
        Stream.of(known.columns())
            .filter(name -> !name.equals(PATH))
            .map(functions::col)
            .toArray(Column[]::new);
    return known
        .groupBy(PATH)
        .agg(functions.max_by(functions.struct(others), run).as("last"))
        .select(PATH, "last.*")
        .join(suspects, PATH, "left")
        .withColumn("suspect", functions.coalesce(functions.col("until").geq(run), NO))
        .drop("until");
  }

  /** Where they are. */
  public String folder() {
    return folder.location();
  }

  /** What was found right before this run, each file once. */
  public FileSet right() {
    return right;
  }

  /** How many of some of {@link #right} were taken over when no signed report vouched for them. */
  public long unsigned(FileSet some) {
    int unsigned = some.place(UNSIGNED);
    return some.where(functions.col(UNSIGNED), row -> row.getBoolean(unsigned)).size().files();
  }

  /** When the check began by which some of {@link #right} are right, if anyone signed that. */
  public Map<String, Instant> rightAt(FileSet some, Set<String> paths) {
    if (paths.isEmpty()) {
      return Map.of();
    }

    int unsigned = some.place(UNSIGNED);
    int when = some.place(RUN);
    List<Row> found =
        some.isFew()
            ? some.few()
            : some.rows().where(functions.col(PATH).isInCollection(paths)).collectAsList();
    Map<String, Instant> at = new HashMap<>();
    for (Row row : found) {
      if (!row.getBoolean(unsigned)) {
        at.put(row.getString(0), Instant.ofEpochMilli(row.getLong(when)));
      }
    }

    return at;
  }

  /** Adds outcomes that Spark's tasks find, and returns them as they are recorded. */
  public FileSet add(Dataset<Row> found) {
    Column now = functions.lit(begun.toEpochMilli());
    // a task's file is in its place when the task ends, not when the job does
    Dataset<Row> written =
        found
            .withColumn(RUN, now)
            .withColumn(UNSIGNED, NO)
            .withColumn(VERSION, functions.lit(version()));
    return rows(write(OUTCOMES, written), null);
  }

  /** Adds a few outcomes that the driver found; of these, {@link #seal} writes all. */
  public FileSet add(FileSet found) {
    List<Row> all =
        found.few().stream().map(row -> with(row, begun.toEpochMilli(), false, version())).toList();
    return FileSet.few(spark, all, rows);
  }

  private static String version() {
    return Objects.requireNonNullElse(
        RecordedFiles.class.getPackage().getImplementationVersion(), "unknown");
  }

  private Map<String, Long> write(String in, Dataset<Row> found) {
    String of = in + "/" + run;
    found
        .write()
        .option("mapreduce.fileoutputcommitter.algorithm.version", "2")
        .option("maxRecordsPerFile", "0")
        .option("compression", "gzip")
        .json(folder.uri(of));
    try {
      return folder.files(of);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private String write(String in, byte[] bytes) {
    String name = "part-0.json.gz";
    try {
      folder.writeWhole(in + "/" + run, name, bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return in + "/" + run + "/" + name;
  }

  /**
   * Makes sure that nothing was lost between the tasks and what {@link #add} returned.
   *
   * @param asked the files that were to be checked
   * @throws IcebergCryptoException when one has no outcome
   */
  public void requireAll(FileSet asked, FileSet found) {
    requireNone(asked.among(found, false).size().files());
  }

  private void requireNone(long lost) {
    if (lost != 0) {
      throw new IcebergCryptoException(
          String.format("Results of %d files were lost in %s", lost, folder.location()),
          "That says nothing about the table. Find out what deletes files there, and verify again"
              + " with a new folder.");
    }
  }

  /**
   * Writes what was found wrong, and then the record of this run and its index.
   *
   * @param before what it took over of {@link #right}
   * @param now what {@link #add} returned
   * @return where the record is, the SHA-256 of its index, when the oldest of its checks began,
   *     which versions checked, and how many files it has, for the report
   */
  public Map<String, Object> seal(FileSet before, FileSet now) {
    keep(wrong(now));
    FileSet all = FileSet.all(List.of(takenOver(before), right(now)));
    Sealed sealed = all.isFew() ? seal(all.few()) : seal(all.rows());
    String name = indexOf(run);
    try {
      folder.write(name, sealed.index().bytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    Map<String, Object> record = new LinkedHashMap<>();
    record.put("folder", folder.location());
    record.put("index", name);
    record.put("sha256", Sha256.hex(sealed.index().bytes()));
    record.put("oldest", Instant.ofEpochMilli(sealed.oldest()).toString());
    record.put("files", sealed.files());
    record.put("versions", List.copyOf(sealed.versions()));
    return record;
  }

  /** Writes what was found wrong, for all later runs. */
  private void keep(FileSet wrong) {
    if (wrong.isEmpty()) {
      return;
    } else if (wrong.isFew()) {
      write(PROBLEMS, JsonLines.of(wrong.few(), rows));
      return;
    }

    FileSet written = rows(write(PROBLEMS, wrong.rows().coalesce(1)), null);
    requireNone(wrong.size().files() - written.size().files());
  }

  /** Nobody vouches from now on for what was taken over without a signed report. */
  private FileSet takenOver(FileSet before) {
    FileSet without = before.select(rows.fieldNames());
    if (isSigned) {
      return without;
    } else if (!without.isFew()) {
      return FileSet.of(without.rows().withColumn(UNSIGNED, functions.lit(true)));
    }

    List<Row> all = new ArrayList<>();
    for (Row row : without.few()) {
      Object[] values = values(row).toArray();
      values[rows.fieldIndex(UNSIGNED)] = true;
      all.add(RowFactory.create(values));
    }

    return FileSet.few(spark, all, rows);
  }

  private record Sealed(RecordIndex index, long files, long oldest, Set<String> versions) {}

  private Sealed seal(List<Row> all) {
    byte[] bytes = JsonLines.of(all, rows);
    Map<String, String> hashes =
        all.isEmpty() ? Map.of() : Map.of(write(RECORDS, bytes), Sha256.hex(bytes));
    int run = rows.fieldIndex(RUN);
    int version = rows.fieldIndex(VERSION);
    Set<String> versions = new TreeSet<>();
    all.forEach(row -> versions.add(row.getString(version)));
    long oldest =
        all.stream().mapToLong(row -> row.getLong(run)).min().orElse(begun.toEpochMilli());
    return new Sealed(RecordIndex.of(hashes), all.size(), oldest, versions);
  }

  private Sealed seal(Dataset<Row> all) {
    Column oldest = functions.coalesce(functions.min(RUN), functions.lit(begun.toEpochMilli()));
    Row sums = all.agg(functions.count(PATH), oldest, functions.collect_set(VERSION)).first();
    long files = sums.getLong(0);
    int parts = (int) Math.min(files / ROWS_IN_FILE + 1, MAX_FILES);
    Map<String, Long> names = write(RECORDS, all.repartition(parts, functions.col(PATH)));
    return new Sealed(
        indexed(names, files), files, sums.getLong(1), new TreeSet<>(sums.getList(2)));
  }

  /** The index of a record that has so many outcomes. */
  private RecordIndex indexed(Map<String, Long> files, long expected) {
    RecordFolder from = folder;
    MapFunction<String, Row> hashed =
        name -> {
          byte[] content = from.outcomes(name, null);
          return RowFactory.create(name, Sha256.hex(content), JsonLines.count(content));
        };
    Map<String, String> hashes = new HashMap<>();
    long lost = expected;
    if (!files.isEmpty()) {
      long bytes = files.values().stream().mapToLong(Long::longValue).sum();
      for (Row file :
          named(files.keySet(), bytes).map(hashed, Encoders.row(HASHED)).collectAsList()) {
        hashes.put(file.getString(0), file.getString(1));
        lost -= file.getLong(2);
      }
    }

    requireNone(lost);
    return RecordIndex.of(hashes);
  }
}
