package io.icebergcrypto.spark.verify.scan;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.EarlierReport;
import io.icebergcrypto.audit.RecordIndex;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.format.Sha256;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
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
 * record of its own, and then what it found wrong to another place, which every later run reads.
 * The folder holds paths and outcomes, no keys. Who writes to it can make a file pass as checked,
 * until a signed report has the hash of a record's index: then only the files of that record count.
 * Nobody can make a file pass by what is recorded as wrong, signed or not: it is checked again.
 *
 * <p>Files are JSON, a line for each outcome, compressed: their bytes are hashed and read at once,
 * so nobody can exchange them in between.
 */
public final class RecordedFiles {
  /** Whether a file that was right was also found wrong, or could not be read since. */
  public static final Column SUSPECT = functions.col("suspect");

  /** Whether an outcome was taken over when no signed report vouched for it. */
  public static final Column UNSIGNED = functions.col("unsigned");

  private static final Logger LOG = LoggerFactory.getLogger(RecordedFiles.class);

  /** Spark does not read files with such names as data. */
  private static final String MARKER = "_verification.json";

  /** What tasks found; in each of these, a run has a folder. */
  private static final String OUTCOMES = "outcomes";

  private static final String RECORDS = "records";
  private static final String PROBLEMS = "problems";
  private static final int MAX_FILES = 10_000;
  private static final long ROWS_IN_FILE = 100_000;
  private static final String PATH = "path";
  private static final String RUN = "run";
  private static final Column NO = functions.lit(false);
  private static final StructType HASHED =
      new StructType()
          .add("name", DataTypes.StringType)
          .add("sha256", DataTypes.StringType)
          .add("lines", DataTypes.LongType);
  private static final Column IS_RIGHT = functions.col("problem").isNull();

  private final SparkSession spark;
  private final StructType rows;
  private final String folder;
  private final FileSystem storage;
  private final String run = UUID.randomUUID().toString();
  private final Instant begun = Instant.now().truncatedTo(ChronoUnit.MILLIS);
  private final boolean isSigned;
  private final Dataset<Row> right;

  private RecordedFiles(
      SparkSession spark,
      StructType rows,
      String folder,
      FileSystem storage,
      EarlierReport.Recorded signed)
      throws IOException {
    this.spark = spark;
    this.rows = rows.add(RUN, DataTypes.LongType).add("unsigned", DataTypes.BooleanType);
    this.folder = folder;
    this.storage = storage;
    this.isSigned = signed != null;
    List<String> outcomes = outcomesOfStoppedRuns();
    Dataset<Row> wrong = rows(concat(outcomes, stored(PROBLEMS)), Map.of());
    Dataset<Row> known =
        isSigned ? signed(signed) : rows(concat(outcomes, stored(RECORDS)), Map.of());
    this.right = suspected(known.where(IS_RIGHT), wrong.where(functions.not(IS_RIGHT)));
  }

  /**
   * Opens the folder of a table and a depth, or begins one.
   *
   * @param folder where outcomes are recorded
   * @param name the table's
   * @param rows what outcomes are; with path and problem
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
    if ((Storage.comparable(folder) + "/")
        .startsWith(Storage.comparable(metadata.location()) + "/")) {
      throw refused(folder, "it is in the table's own location", "Give a folder elsewhere.");
    }

    Map<String, String> marker = new LinkedHashMap<>();
    marker.put("table", name);
    marker.put("table_uuid", metadata.uuid());
    marker.put("depth", depth);
    try {
      Path path = new Path(folder);
      FileSystem storage = path.getFileSystem(spark.sessionState().newHadoopConf());
      JsonObject found = read(storage, new Path(path, MARKER));
      boolean isToBegin = signed == null || signed.equals(EarlierReport.Recorded.NONE);
      if (found == null && isToBegin) {
        begin(storage, path, Json.of(marker));
      } else if (isToBegin) {
        require(folder, found, marker, "table_uuid", "table " + text(found, "table"));
        require(folder, found, marker, "depth", "depth " + text(found, "depth"));
      }

      return new RecordedFiles(spark, rows, folder, storage, signed);
    } catch (IOException | IllegalArgumentException e) { // the latter is for what is not a URI
      throw new IcebergCryptoException(
              String.format("the folder %s cannot be used to resume: %s", folder, e.getMessage()),
              "Check the URI, and that Spark may read and write there.",
              e)
          .inTable(name);
    }
  }

  private static JsonObject read(FileSystem storage, Path marker) throws IOException {
    try (InputStream in = storage.open(marker)) {
      String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
      return Json.object(text);
    } catch (FileNotFoundException e) {
      return null;
    } catch (RuntimeException e) {
      throw new IOException(marker + " is not what a verification wrote", e);
    }
  }

  private static void begin(FileSystem storage, Path folder, String marker) throws IOException {
    storage.mkdirs(folder);
    if (storage.listStatus(folder).length > 0) {
      throw refused(
          folder.toString(),
          "it holds files, but none that a verification wrote",
          "Give a new folder, or one that another verification of this table was given.");
    }

    write(storage, new Path(folder, MARKER), marker.getBytes(StandardCharsets.UTF_8));
  }

  private static void write(FileSystem storage, Path file, byte[] bytes) throws IOException {
    try (OutputStream out = storage.create(file, false)) {
      out.write(bytes);
    }
  }

  private static void require(
      String folder, JsonObject found, Map<String, String> expected, String key, String whose) {
    if (!expected.get(key).equals(text(found, key))) {
      throw refused(
          folder, "it is of " + whose, "Give a folder of its own to each table and depth.");
    }
  }

  private static String text(JsonObject json, String key) {
    return json.has(key) && json.get(key).isJsonPrimitive() ? json.get(key).getAsString() : "";
  }

  private static IcebergCryptoException refused(String folder, String why, String hint) {
    return new InvalidConfigurationException(
        String.format("The folder %s cannot be used to resume: %s", folder, why), hint);
  }

  /**
   * Those of runs that have no record; those of others are deleted. Files of runs that go on are
   * among them: a task's are whole, or not there.
   */
  private List<String> outcomesOfStoppedRuns() throws IOException {
    Set<String> indexes =
        listed(new Path(folder)).stream().map(Path::getName).collect(Collectors.toSet());
    List<String> names = new ArrayList<>();
    for (Path of : listed(new Path(folder, OUTCOMES))) {
      if (indexes.contains(indexOf(of.getName()))) {
        delete(of);
      } else {
        names.addAll(stored(of));
      }
    }

    return names;
  }

  /** Storage that nothing may be deleted in has more files, that is all. */
  private void delete(Path needless) {
    try {
      storage.delete(needless, true);
    } catch (IOException e) {
      LOG.debug("{} was not deleted", needless, e);
    }
  }

  private static String indexOf(String run) {
    return "_record-" + run + ".json";
  }

  /** What is in a folder; nothing when there is no such folder. */
  private List<Path> listed(Path in) throws IOException {
    return storage.exists(in)
        ? Stream.of(storage.listStatus(in)).map(FileStatus::getPath).toList()
        : List.of();
  }

  /** The files of all runs in a folder. */
  private List<String> stored(String in) throws IOException {
    List<String> names = new ArrayList<>();
    for (Path of : listed(new Path(folder, in))) {
      names.addAll(stored(of));
    }

    return names;
  }

  /** The files of a run, not those of an attempt, nor _SUCCESS: {@code records/<run>/part-0}. */
  private List<String> stored(Path of) throws IOException {
    return Stream.of(storage.listStatus(of))
        .map(FileStatus::getPath)
        .filter(path -> !path.getName().matches("[_.].*"))
        .map(RecordedFiles::name)
        .toList();
  }

  private static String name(Path file) {
    Path of = file.getParent();
    return of.getParent().getName() + "/" + of.getName() + "/" + file.getName();
  }

  private static List<String> concat(List<String> some, List<String> others) {
    return Stream.of(some, others).flatMap(List::stream).toList();
  }

  /** The record whose index was signed. */
  private Dataset<Row> signed(EarlierReport.Recorded signed) throws IOException {
    if (signed.equals(EarlierReport.Recorded.NONE)) {
      return rows(List.of(), Map.of());
    }

    byte[] stored;
    try (InputStream in = storage.open(new Path(folder, signed.index()))) {
      stored = in.readNBytes(RecordIndex.MAX_BYTES);
    } catch (FileNotFoundException e) {
      throw RecordIndex.missing(folder, "its index");
    }

    RecordIndex index = RecordIndex.read(stored, signed.sha256(), folder);
    index.require(Set.copyOf(stored(RECORDS)), folder);
    return rows(List.copyOf(index.files().keySet()), index.files());
  }

  private Dataset<Row> binary(List<String> names) {
    return spark
        .read()
        .format("binaryFile")
        .option("ignoreMissingFiles", "false")
        .option("ignoreCorruptFiles", "false")
        .load(names.stream().map(n -> new Path(folder, n).toString()).toArray(String[]::new))
        .select(PATH, "content");
  }

  /**
   * The outcomes in files.
   *
   * @param hashes of those that must have these bytes, by name
   */
  private Dataset<Row> rows(List<String> names, Map<String, String> hashes) {
    if (names.isEmpty()) {
      return spark.createDataFrame(List.of(), rows);
    }

    String where = folder;
    Map<String, String> signed = new HashMap<>(hashes);
    FlatMapFunction<Row, String> lines =
        file -> {
          String name = name(new Path(file.getString(0)));
          String hash = signed.get(name);
          if (hash != null && !hash.equals(Sha256.hex(file.getAs(1)))) {
            throw RecordIndex.changed(where, name);
          }

          return lines(file.getAs(1)).iterator();
        };
    Dataset<String> json = binary(names).flatMap(lines, Encoders.STRING());
    return spark.read().schema(rows).option("mode", "FAILFAST").json(json);
  }

  private static Stream<String> lines(byte[] content) throws IOException {
    if (content.length == 0) {
      return Stream.empty(); // of a task that had no file
    }

    InputStream in = new GZIPInputStream(new ByteArrayInputStream(content));
    return new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8)).lines();
  }

  /**
   * Each file once, as it was last found right. What is wrong was wrong whoever says so, and
   * whenever; what could not be read was read if it was right later.
   */
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
    return folder;
  }

  /** What was found right before this run, each file once. */
  public Dataset<Row> right() {
    return right;
  }

  /** Adds outcomes, and returns them as they are recorded. */
  public Dataset<Row> add(Dataset<Row> found) {
    Column now = functions.lit(begun.toEpochMilli());
    // a task's file is in its place when the task ends, not when the job does
    return rows(write(OUTCOMES, found.withColumn(RUN, now).withColumn("unsigned", NO)), Map.of());
  }

  private List<String> write(String in, Dataset<Row> found) {
    Path of = new Path(new Path(folder, in), run);
    found
        .write()
        .option("mapreduce.fileoutputcommitter.algorithm.version", "2")
        .option("compression", "gzip")
        .json(of.toString());
    try {
      return stored(of);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Makes sure that nothing was lost between the tasks and what {@link #add} returned.
   *
   * @param asked the files that were to be checked
   * @throws IcebergCryptoException when one has no outcome
   */
  public void requireAll(Dataset<Row> asked, Dataset<Row> found) {
    requireNone(asked.join(found.select(PATH), PATH, "left_anti").count());
  }

  private void requireNone(long lost) {
    if (lost != 0) {
      throw new IcebergCryptoException(
          String.format("Results of %d files were lost in %s", lost, folder),
          "That says nothing about the table. Find out what deletes files there, and verify again"
              + " with a new folder.");
    }
  }

  /**
   * Writes the record of this run and its index, and what was found wrong.
   *
   * @param before what it took over of {@link #right}
   * @param now what {@link #add} returned
   * @return where the record is, the SHA-256 of its index, when the oldest of its checks began, and
   *     how many files it has, for the report
   */
  public Map<String, Object> seal(Dataset<Row> before, Dataset<Row> now) {
    Dataset<Row> wrong = now.where(functions.not(IS_RIGHT));
    if (!wrong.isEmpty()) {
      write(PROBLEMS, wrong.coalesce(1));
    }

    Column unsigned = isSigned ? UNSIGNED : functions.lit(true);
    Dataset<Row> all =
        before.drop("suspect").withColumn("unsigned", unsigned).unionByName(now.where(IS_RIGHT));
    Column oldest = functions.coalesce(functions.min(RUN), functions.lit(begun.toEpochMilli()));
    Row sums = all.agg(functions.count(PATH), oldest).first();
    long files = sums.getLong(0);
    int parts = (int) Math.min(files / ROWS_IN_FILE + 1, MAX_FILES);
    RecordIndex index = indexed(write(RECORDS, all.repartition(parts, functions.col(PATH))), files);
    String name = indexOf(run);
    try {
      write(storage, new Path(folder, name), index.bytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    Map<String, Object> record = new LinkedHashMap<>();
    record.put("folder", folder);
    record.put("index", name);
    record.put("sha256", Sha256.hex(index.bytes()));
    record.put("oldest", Instant.ofEpochMilli(sums.getLong(1)).toString());
    record.put("files", files);
    return record;
  }

  /** The index of a record that has so many outcomes. */
  private RecordIndex indexed(List<String> names, long expected) {
    MapFunction<Row, Row> hashed =
        file -> {
          byte[] content = file.getAs(1);
          long count = lines(content).count();
          String name = name(new Path(file.getString(0)));
          return RowFactory.create(name, Sha256.hex(content), count);
        };
    Map<String, String> hashes = new HashMap<>();
    long lost = expected;
    if (!names.isEmpty()) {
      for (Row file : binary(names).map(hashed, Encoders.row(HASHED)).collectAsList()) {
        hashes.put(file.getString(0), file.getString(1));
        lost -= file.getLong(2);
      }
    }

    requireNone(lost);
    return RecordIndex.of(hashes);
  }
}
