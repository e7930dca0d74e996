package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.kms.call.Causes;
import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import org.apache.iceberg.util.LocationUtil;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.expressions.UserDefinedFunction;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;

/**
 * Lists all files below folders, on the executors: a task lists some folders and hands on those
 * that it finds beyond them, so that a large tree is shared among all.
 */
public final class Folders implements AutoCloseable {
  /** path, length; folder: it is yet to be listed; problem: why a folder cannot be listed. */
  private static final StructType ENTRY =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false)
          .add("folder", DataTypes.BooleanType, false)
          .add("problem", DataTypes.StringType);

  /** How many folders a task lists before it hands on the rest. */
  private static final int FOLDERS_A_TASK = 64;

  private static final int ROUNDS = 1000;
  private static final String PLACE = "place";

  private final SparkSession spark;
  private final Broadcast<Storage> storage;
  private final List<Dataset<Row>> rounds = new ArrayList<>();

  /** Lists with this storage. */
  public Folders(SparkSession spark, Broadcast<Storage> storage) {
    this.spark = spark;
    this.storage = storage;
  }

  /**
   * All files below folders, each once: path, length, problem. A row with a problem is a folder
   * that cannot be listed. It is kept until this is closed.
   *
   * @param roots none is below another
   */
  public Dataset<Row> files(List<String> roots) {
    List<Row> rows = roots.stream().map(root -> entry(root, 0, true, null)).toList();
    Dataset<Row> folders = spark.createDataFrame(rows, ENTRY);
    Broadcast<Storage> shared = storage;
    MapPartitionsFunction<Row, Row> list = from -> new Walk(from, shared.value());
    Dataset<Row> files = null;
    for (int round = 0; round < ROUNDS; round++) {
      Dataset<Row> found =
          folders.mapPartitions(list, Encoders.row(ENTRY)).persist(StorageLevel.MEMORY_AND_DISK());
      rounds.add(found);
      Dataset<Row> here = found.where(functions.not(functions.col("folder")));
      files = files == null ? here : files.union(here);
      folders = found.where("folder").repartition(spark.sparkContext().defaultParallelism());
      if (folders.isEmpty()) {
        return files.select("path", "length", "problem");
      }
    }

    throw new IllegalStateException("Folders are nested without end: " + roots);
  }

  /** The folders that are not in any of the others. */
  public static List<String> outermost(Collection<String> folders) {
    Map<String, String> byPlace = new TreeMap<>();
    folders.forEach(folder -> byPlace.putIfAbsent(Storage.comparable(folder) + "/", folder));
    return byPlace.keySet().stream()
        .filter(
            place ->
                byPlace.keySet().stream()
                    .noneMatch(other -> !other.equals(place) && place.startsWith(other)))
        .map(byPlace::get)
        .toList();
  }

  /** Files that are not among others, however their paths are written. */
  public static Dataset<Row> without(Dataset<Row> files, Dataset<Row> others) {
    return joined(files, others, "left_anti").select("path", "length", "problem");
  }

  /** Files that are among others, however their paths are written. */
  public static Dataset<Row> among(Dataset<Row> files, Dataset<Row> others) {
    return joined(files, others, "left_semi").select("path", "length");
  }

  private static Dataset<Row> joined(Dataset<Row> files, Dataset<Row> others, String how) {
    UserDefinedFunction place =
        functions.udf((UDF1<String, String>) Storage::comparable, DataTypes.StringType);
    Column path = functions.col("path");
    return files
        .withColumn(PLACE, place.apply(path))
        .join(others.select(place.apply(path).as(PLACE)), PLACE, how);
  }

  /**
   * Whether a file is below any of the folders, and its path does not lead out of them: one of the
   * same path, but in another storage, bucket or cluster, is not.
   *
   * @param path a column of locations
   */
  public static Column isIn(Column path, List<String> folders) {
    List<Place> places = folders.stream().map(Place::of).toList();
    UDF1<String, Boolean> isIn = location -> places.stream().anyMatch(Place.of(location)::isIn);
    return functions.udf(isIn, DataTypes.BooleanType).apply(path);
  }

  /**
   * Whether a listing of folders shows a file: its path literally begins with one of them. To
   * object stores, {@code a//b} is no other name of {@code a/b}.
   */
  public static boolean shows(List<String> folders, String file) {
    return folders.stream()
        .anyMatch(root -> file.startsWith(LocationUtil.stripTrailingSlash(root) + "/"));
  }

  /** Whether a location is a folder, or in it. */
  public static boolean isIn(String location, String folder) {
    Place place = Place.of(location);
    Place of = Place.of(folder);
    return place.equals(of) || place.isIn(of);
  }

  /** A location as it can be compared: its storage, and its path with a slash at its end. */
  record Place(String storage, String path) implements Serializable {
    static Place of(String location) {
      return new Place(Storage.of(location), Storage.comparable(location) + "/");
    }

    boolean isIn(Place folder) {
      return storage.equals(folder.storage)
          && path.startsWith(folder.path)
          && path.length() > folder.path.length()
          && !path.contains("/..");
    }
  }

  @Override
  public void close() {
    rounds.forEach(Dataset::unpersist);
  }

  private static Row entry(String path, long length, boolean folder, String problem) {
    return RowFactory.create(path, length, folder, problem);
  }

  /** Lists folders, and folders in these, up to a number; holds no file. */
  private static final class Walk implements Iterator<Row> {
    private final Iterator<Row> given;
    private final Storage storage;
    private final Deque<String> found = new ArrayDeque<>();
    private String folder;
    private Iterator<Storage.Entry> open = Collections.emptyIterator();
    private int listed = 0;
    private Row next;

    private Walk(Iterator<Row> given, Storage storage) {
      this.given = given;
      this.storage = storage;
    }

    @Override
    public boolean hasNext() {
      while (next == null) {
        try {
          if (open.hasNext()) {
            this.next = fileOrNull(open.next());
          } else if (found.isEmpty() && !given.hasNext()) {
            return false;
          } else {
            this.next = openNextOrNull();
          }
        } catch (RuntimeException e) {
          this.open = Collections.emptyIterator();
          this.next = entry(folder, 0, false, "it cannot be listed: " + Causes.root(e));
        }
      }

      return true;
    }

    private Row fileOrNull(Storage.Entry entry) {
      if (entry.isFolder()) {
        found.push(entry.path());
        return null;
      }

      return entry(entry.path(), entry.length(), false, null);
    }

    private Row openNextOrNull() {
      if (!found.isEmpty() && listed >= FOLDERS_A_TASK) {
        return entry(found.pop(), 0, true, null);
      }

      this.folder = found.isEmpty() ? given.next().getString(0) : found.pop();
      this.listed++;
      this.open = storage.list(folder);
      return null;
    }

    @Override
    public Row next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }

      Row row = next;
      this.next = null;
      return row;
    }
  }
}
