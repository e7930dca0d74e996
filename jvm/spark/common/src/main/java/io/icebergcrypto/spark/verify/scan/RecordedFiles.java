package io.icebergcrypto.spark.verify.scan;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.format.Json;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.iceberg.TableMetadata;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Outcomes of data and delete files in a folder, as Parquet: what was found right there before is
 * not checked again, as these files do not change. Each task's outcomes are there when it ends, so
 * a run that was stopped continues where it was. The folder holds paths and outcomes, no keys. Who
 * writes to it can make a file pass as checked.
 */
public final class RecordedFiles {
  /** Spark does not read files with such names as data. */
  private static final String MARKER = "_verification.json";

  private static final String RUN = "run";

  private final SparkSession spark;
  private final StructType schema;
  private final String outcomes;
  private final String run = UUID.randomUUID().toString();

  private RecordedFiles(SparkSession spark, StructType rows, String outcomes) {
    this.spark = spark;
    this.schema = rows.add(RUN, DataTypes.StringType);
    this.outcomes = outcomes;
  }

  /**
   * Opens the folder of a table and a depth, or begins one.
   *
   * @param name the table's
   * @param rows what outcomes are; with path and problem
   * @throws InvalidConfigurationException when it is the folder of another table or depth, or of
   *     something else
   * @throws IcebergCryptoException when the storage fails
   */
  public static RecordedFiles open(
      SparkSession spark,
      String folder,
      String name,
      TableMetadata metadata,
      String depth,
      StructType rows) {
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

      return new RecordedFiles(spark, rows, new Path(path, "outcomes").toString());
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

    try (OutputStream out = storage.create(new Path(folder, MARKER), false)) {
      out.write(marker.getBytes(StandardCharsets.UTF_8));
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

  /** What was found right before this run, each file once. */
  public Dataset<Row> right() {
    return all()
        .where("problem IS NULL")
        .where(functions.col(RUN).notEqual(run)) // Spark reads the folder again when it grows
        .dropDuplicates("path")
        .drop(RUN);
  }

  /** Adds outcomes, and returns them as they are recorded. */
  public Dataset<Row> add(Dataset<Row> found) {
    found
        .withColumn(RUN, functions.lit(run))
        .write()
        .mode("append")
        // a task's file is in its place when the task ends, not when the job does
        .option("mapreduce.fileoutputcommitter.algorithm.version", "2")
        .parquet(outcomes);
    return all().where(functions.col(RUN).equalTo(run)).dropDuplicates("path").drop(RUN);
  }

  private Dataset<Row> all() {
    try {
      Path path = new Path(outcomes);
      FileSystem storage = path.getFileSystem(spark.sessionState().newHadoopConf());
      return storage.exists(path)
          ? spark.read().schema(schema).parquet(outcomes)
          : spark.createDataFrame(List.of(), schema);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
