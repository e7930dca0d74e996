package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.IcebergCryptoException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * A Hudi table as its options and, when it exists, its own properties describe it: where Hudi puts
 * rows and values beside its Parquet files. It encrypts none of that.
 *
 * @param options of the write, or of the table in SQL
 * @param stored what {@code .hoodie/hoodie.properties} says; nothing of a new table
 */
record HudiTable(Map<String, String> options, Properties stored) {
  private static final String METADATA = "hoodie.metadata.";

  /** An index that an SQL statement makes is not among the options. */
  static final String NEW_INDEX = METADATA + "index.expression.enable";

  /** Whether an index with values, or with keys of records, is wanted. */
  private static final List<String> INDEXES =
      List.of(
          METADATA + "index.partition.stats.enable",
          METADATA + "index.bloom.filter.enable",
          METADATA + "index.secondary.enable",
          NEW_INDEX,
          METADATA + "record.index.enable",
          METADATA + "global.record.level.index.enable",
          METADATA + "record.level.index.enable");

  /** In which Spark hands on the columns of {@code partitionBy}. */
  private static final String SPARKS_PARTITIONS = "__partition_columns";

  private static final String COLUMN_STATS = METADATA + "index.column.stats.enable";

  /**
   * Reads the table's own properties.
   *
   * @throws IcebergCryptoException when they are there, and cannot be read
   */
  static HudiTable of(Path folder, Map<String, String> options, Configuration hadoop) {
    Properties stored = new Properties();
    Path file = new Path(folder, ".hoodie/hoodie.properties");
    try (InputStream in = file.getFileSystem(hadoop).open(file)) {
      stored.load(in);
    } catch (FileNotFoundException e) {
      return new HudiTable(options, stored); // a new table
    } catch (IOException | IllegalArgumentException e) {
      throw new IcebergCryptoException(
          String.format("%s cannot be read: %s", file, e),
          "It says whether Hudi would leave rows in plaintext, so nothing was written. Check that"
              + " the storage is up and that its credentials allow reading this file.",
          e);
    }

    return new HudiTable(options, stored);
  }

  /**
   * What Hudi would leave in plaintext that has rows, values, or keys of records; with the cure.
   */
  List<String> plaintext() {
    List<String> found = new ArrayList<>();
    List<String> types =
        said(
            "hoodie.table.type",
            "hoodie.datasource.write.table.type",
            "hoodie.datasource.write.storage.type",
            "type");
    if (types.contains("merge_on_read") || types.contains("mor")) {
      // then Parquet's factory encrypts the blocks with rows
      boolean inParquet = option("hoodie.logfile.data.block.format").equalsIgnoreCase("parquet");
      found.add(
          (inParquet ? "keys of deleted records" : "rows")
              + " in log files (a merge-on-read table; copy-on-write has none)");
    }

    if (said("hoodie.table.cdc.enabled").contains("true")) {
      found.add("rows in log files of changes (hoodie.table.cdc.enabled=true)");
    }

    said("hoodie.table.base.file.format", "hoodie.base.file.format").stream()
        .filter(format -> !format.equals("parquet"))
        .forEach(f -> found.add("all rows, in files of another format than Parquet (" + f + ")"));
    if (said("hoodie.datasource.write.operation").contains("bootstrap")
        || !said("hoodie.bootstrap.base.path").isEmpty()) {
      found.add("the files that a bootstrap leaves as they are");
    }

    found.addAll(indexes());
    return found;
  }

  /** Those of the metadata table. Whether it has column statistics differs by Hudi's version. */
  private List<String> indexes() {
    List<String> found = new ArrayList<>();
    Arrays.stream(stored.getProperty("hoodie.table.metadata.partitions", "").split(","))
        .map(String::trim)
        .filter(name -> !name.isEmpty() && !name.equals("files"))
        .forEach(name -> found.add("the index " + name + " in the metadata table"));
    if (option(METADATA + "enable").equalsIgnoreCase("false")) {
      return found;
    }

    if (!option(COLUMN_STATS).equalsIgnoreCase("false")) {
      found.add("column statistics in the metadata table, unless " + COLUMN_STATS + "=false");
    }

    INDEXES.stream()
        .filter(name -> option(name).equalsIgnoreCase("true"))
        .forEach(name -> found.add("an index in the metadata table (" + name + "=true)"));
    return found;
  }

  /** Whether the write makes it. */
  boolean isNew() {
    return stored.isEmpty();
  }

  /** The columns that identify a record: Hudi repeats their values in a column of its own. */
  List<String> recordKeys() {
    return given(
            "hoodie.table.recordkey.fields",
            "hoodie.datasource.write.recordkey.field",
            "primaryKey")
        .flatMap(names -> Arrays.stream(names.split(",")))
        .map(String::trim)
        .distinct()
        .toList();
  }

  /** The columns whose values are names of folders. */
  List<String> partitions() {
    return given(
            "hoodie.table.partition.fields",
            "hoodie.datasource.write.partitionpath.field",
            SPARKS_PARTITIONS)
        .flatMap(names -> Arrays.stream(names.split(",")))
        .map(name -> name.replaceFirst(":.*", "").replaceAll("[\\[\\]\"\\s]", ""))
        .filter(name -> !name.isEmpty())
        .distinct()
        .toList();
  }

  /** Whether Hudi adds its own columns to the rows. */
  boolean hasMetaColumns() {
    List<String> told = said("hoodie.populate.meta.fields");
    return told.isEmpty() || told.contains("true");
  }

  private String option(String name) {
    return options.getOrDefault(name, "").trim();
  }

  /** What the table and the options say, in lower case: an overwriting write makes a new table. */
  private List<String> said(String... names) {
    return given(names).map(value -> value.toLowerCase(Locale.ROOT)).toList();
  }

  private Stream<String> given(String... names) {
    return Arrays.stream(names)
        .flatMap(name -> Stream.of(stored.getProperty(name, "").trim(), option(name)))
        .filter(value -> !value.isEmpty());
  }
}
