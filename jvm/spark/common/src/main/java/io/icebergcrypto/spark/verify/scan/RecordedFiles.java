package io.icebergcrypto.spark.verify.scan;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.EarlierReport;
import io.icebergcrypto.audit.RecordIndex;
import io.icebergcrypto.format.Json;
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
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.iceberg.TableMetadata;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Outcomes of data and delete files in a folder: what was found right there before is not checked
 * again, as these files do not change. Each task's outcomes are there when it ends, so a run that
 * was stopped continues where it was. The folder holds paths and outcomes, no keys. Who writes to
 * it can make a file pass as checked, until a signed report has the hash of its index: then only
 * the files of that index count.
 *
 * <p>Files of outcomes are JSON, a line each, compressed: their bytes are hashed and read at once,
 * so nobody can exchange them in between.
 */
public final class RecordedFiles {
  /** Spark does not read files with such names as data. */
  private static final String MARKER = "_verification.json";

  private static final String OUTCOMES = "outcomes";
  private static final String RUN = "run";

  private final SparkSession spark;
  private final StructType rows;
  private final String folder;
  private final FileSystem storage;
  private final String run = UUID.randomUUID().toString();
  private final Instant begun = Instant.now().truncatedTo(ChronoUnit.MILLIS);
  private final RecordIndex before;
  private RecordIndex index;

  private RecordedFiles(
      SparkSession spark,
      StructType rows,
      String folder,
      FileSystem storage,
      EarlierReport.Recorded signed)
      throws IOException {
    this.spark = spark;
    this.rows = rows;
    this.folder = folder;
    this.storage = storage;
    this.before = signed == null ? all() : signed(signed);
    this.index = before;
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
      if (found == null) {
        begin(storage, path, Json.of(marker));
      } else {
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

  /** The files of the index that was signed, compared with what is there. */
  private RecordIndex signed(EarlierReport.Recorded signed) throws IOException {
    if (signed.equals(EarlierReport.Recorded.NONE)) {
      return RecordIndex.of(null, Map.of());
    }

    byte[] stored;
    try (InputStream in = storage.open(new Path(folder, signed.index()))) {
      stored = in.readNBytes(RecordIndex.MAX_BYTES);
    } catch (FileNotFoundException e) {
      throw RecordIndex.notSigned(folder, "its index is missing");
    }

    RecordIndex told = RecordIndex.read(stored, signed.sha256(), folder);
    Set<String> there = stored().keySet();
    there.retainAll(told.files().keySet());
    told.require(hashes(there), folder);
    return told;
  }

  /** All files that are there. */
  private RecordIndex all() throws IOException {
    Map<String, Instant> stored = stored();
    Instant oldest = stored.values().stream().min(Comparator.naturalOrder()).orElse(null);
    return RecordIndex.of(oldest, hashes(stored.keySet()));
  }

  /** The names of the files of outcomes, below their folder, and when they were written. */
  private Map<String, Instant> stored() throws IOException {
    Map<String, Instant> names = new HashMap<>();
    try {
      RemoteIterator<LocatedFileStatus> all = storage.listFiles(outcomes(), true);
      while (all.hasNext()) {
        LocatedFileStatus file = all.next();
        Path path = file.getPath();
        boolean isOfRun = path.getParent().getParent().getName().equals(OUTCOMES);
        if (isOfRun && !path.getName().startsWith("_")) { // not of an attempt, nor _SUCCESS
          names.put(name(path), Instant.ofEpochMilli(file.getModificationTime()));
        }
      }
    } catch (FileNotFoundException e) {
      return names; // it is the first run
    }

    return names;
  }

  private Path outcomes() {
    return new Path(folder, OUTCOMES);
  }

  private static String name(Path file) {
    return file.getParent().getName() + "/" + file.getName();
  }

  private Map<String, String> hashes(Collection<String> names) {
    Map<String, String> hashes = new HashMap<>();
    if (!names.isEmpty()) {
      Column hash = functions.sha2(functions.col("content"), 256);
      binary(names)
          .select(functions.col("path"), hash)
          .collectAsList()
          .forEach(row -> hashes.put(name(new Path(row.getString(0))), row.getString(1)));
    }

    return hashes;
  }

  private Dataset<Row> binary(Collection<String> names) {
    return spark
        .read()
        .format("binaryFile")
        .option("ignoreMissingFiles", "false")
        .option("ignoreCorruptFiles", "false")
        .load(names.stream().map(n -> new Path(outcomes(), n).toString()).toArray(String[]::new));
  }

  /** What was recorded in files of these hashes: of each table's file, what its last run found. */
  private Dataset<Row> rows(Map<String, String> files) {
    if (files.isEmpty()) {
      return spark.createDataFrame(List.of(), rows);
    }

    String where = folder;
    FlatMapFunction<Row, String> lines = file -> lines(file, files, where);
    Dataset<String> json =
        binary(files.keySet()).select("path", "content").flatMap(lines, Encoders.STRING());
    Column[] others =
        Stream.of(rows.fieldNames())
            .filter(name -> !name.equals("path"))
            .map(functions::col)
            .toArray(Column[]::new);
    return spark
        .read()
        .schema(rows.add(RUN, DataTypes.LongType))
        .option("mode", "FAILFAST")
        .json(json)
        .groupBy("path")
        .agg(functions.max_by(functions.struct(others), functions.col(RUN)).as("last"))
        .select("path", "last.*");
  }

  private static Iterator<String> lines(Row file, Map<String, String> hashes, String folder)
      throws IOException {
    String name = name(new Path(file.getString(0)));
    byte[] content = file.getAs(1);
    if (!RecordIndex.sha256(content).equals(hashes.get(name))) {
      throw RecordIndex.notSigned(folder, name + " was changed");
    }

    if (content.length == 0) {
      return Collections.emptyIterator(); // of a task that had no file
    }

    InputStream in = new GZIPInputStream(new ByteArrayInputStream(content));
    return new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8)).lines().iterator();
  }

  /** Where they are. */
  public String folder() {
    return folder;
  }

  /** What was found right before this run, each file once. */
  public Dataset<Row> right() {
    return rows(before.files()).where("problem IS NULL");
  }

  /** Adds outcomes, and returns them as they are recorded. */
  public Dataset<Row> add(Dataset<Row> found) {
    found
        .withColumn(RUN, functions.lit(begun.toEpochMilli()))
        .write()
        // a task's file is in its place when the task ends, not when the job does
        .option("mapreduce.fileoutputcommitter.algorithm.version", "2")
        .option("compression", "gzip")
        .json(new Path(outcomes(), run).toString());
    Map<String, String> added;
    try {
      added = hashes(stored().keySet().stream().filter(name -> name.startsWith(run)).toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    this.index = before.with(begun, added);
    return rows(added);
  }

  /**
   * Writes the index of the outcomes that this run took over and added.
   *
   * @return where it is, and its SHA-256, for the report
   */
  public Map<String, Object> seal() {
    String name = "_record-" + run + ".json";
    try {
      write(storage, new Path(folder, name), index.bytes());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    Map<String, Object> record = new LinkedHashMap<>();
    record.put("folder", folder);
    record.put("index", name);
    record.put("sha256", RecordIndex.sha256(index.bytes()));
    record.put("oldest", String.valueOf(index.oldest()));
    return record;
  }
}
