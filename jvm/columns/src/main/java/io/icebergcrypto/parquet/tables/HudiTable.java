package io.icebergcrypto.parquet.tables;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * A Hudi table as it is stored: what its own properties say, and whether it has a metadata table.
 * Whatever set them, they are there before Hudi writes the first file with rows.
 *
 * @param folder where it is
 * @param stored what {@code .hoodie/hoodie.properties} says; nothing of a new table
 * @param hasMetadata whether it has a metadata table, in which Hudi can keep values in plaintext
 */
public record HudiTable(Path folder, Map<String, String> stored, boolean hasMetadata) {
  /** The setting that allows all that is refused here. */
  public static final String PLAINTEXT = "iceberg-crypto.hudi.plaintext";

  /**
   * The setting that names the column whose smallest and largest values Hudi writes into commits,
   * if they look like times.
   */
  public static final String EVENT_TIME = "hoodie.payload.event.time.field";

  /** Its default in Hudi 1.0; later versions have none. */
  public static final String DEFAULT_EVENT_TIME = "ts";

  private static final String OWN = ".hoodie";
  private static final String PROPERTIES = OWN + "/hoodie.properties";

  /** The schemes of the file system that Hudi puts around Hadoop's begin so. */
  private static final String WRAPPED = "hoodie-";

  private static final String RECORD_KEY = "_hoodie_record_key";

  /**
   * Reads the table in a folder.
   *
   * @throws IcebergCryptoException when it is there, and cannot be read
   */
  public static HudiTable of(Path folder, Configuration hadoop) {
    Path file = new Path(folder, PROPERTIES);
    try (InputStream in = file.getFileSystem(hadoop).open(file)) {
      Properties read = new Properties();
      read.load(in);
      Map<String, String> stored = new TreeMap<>();
      read.stringPropertyNames().forEach(name -> stored.put(name, read.getProperty(name)));
      return new HudiTable(
          folder, stored, file.getFileSystem(hadoop).exists(new Path(folder, OWN + "/metadata")));
    } catch (FileNotFoundException e) {
      return new HudiTable(folder, Map.of(), false); // a new table
    } catch (IOException | IllegalArgumentException e) {
      throw new IcebergCryptoException(
          String.format("%s cannot be read: %s", file, e),
          "It says whether Hudi would leave rows in plaintext, so nothing was written. Check that"
              + " the storage is up and that its credentials allow reading this file.",
          e);
    }
  }

  /**
   * Checks, wherever Hudi is about to write a Parquet file, the table that the file is in.
   *
   * @param file null: a part of a log file
   * @throws PlaintextException when rows or values would be plaintext, and may not be
   * @throws InvalidConfigurationException when Hudi's own column lacks the key that it needs
   * @throws NotSupportedException when there would be files of keys
   */
  public static void checkWrite(Path file, ColumnChoices chosen, Configuration hadoop) {
    boolean allowed = chosen.hudiPlaintext();
    if (file == null) {
      checkPlaintext(allowed, "this table", List.of("keys of deleted records in log files"));
      return;
    }

    Path path = unwrapped(file);
    for (Path folder = path.getParent(); folder != null; folder = folder.getParent()) {
      HudiTable table = of(folder, hadoop);
      if (!table.isNew()) {
        table.check(chosen);
        return;
      }
    }

    List<String> unknown = List.of("what nobody knows: no folder above has " + PROPERTIES);
    checkPlaintext(allowed, path.toString(), unknown);
  }

  private static Path unwrapped(Path file) {
    String name = file.toString();
    return name.startsWith(WRAPPED) ? new Path(name.substring(WRAPPED.length())) : file;
  }

  private void check(ColumnChoices chosen) {
    checkPlaintext(chosen.hudiPlaintext(), folder.toString(), plaintext(chosen));
    checkKeys(chosen, stored);
  }

  /** What Hudi would leave in plaintext, or is not known not to. */
  public List<String> plaintext(ColumnChoices chosen) {
    List<String> found = new ArrayList<>();
    HudiSettings.unknown(stored).stream()
        .map(setting -> setting + " in " + PROPERTIES)
        .forEach(found::add);
    if (hasMetadata) {
      found.add(
          "its metadata table, in "
              + OWN
              + "/metadata, which is not there with "
              + HudiSettings.METADATA
              + "=false");
    }

    found.addAll(plaintext(chosen, stored));
    return found;
  }

  /** What Hudi would leave in plaintext of columns with keys, by the roles that these have. */
  public static List<String> plaintext(ColumnChoices chosen, Map<String, String> settings) {
    List<String> found = new ArrayList<>();
    if (chosen.footerKey() == null) {
      found.add("the smallest and the largest record key, in plaintext footers");
    } else if (hasMetaColumns(settings)) {
      recordKeys(settings)
          .filter(
              column ->
                  !chosen
                      .footerKey()
                      .equals(Objects.requireNonNullElse(chosen.key(column), chosen.footerKey())))
          .map(
              column ->
                  String.format(
                      "values of record key '%s', which has key '%s', in footers, for who may use"
                          + " key '%s'",
                      column, chosen.key(column), chosen.footerKey()))
          .forEach(found::add);
    }

    partitions(settings)
        .filter(column -> chosen.key(column) != null)
        .map(column -> "values of column '" + column + "', in names of folders")
        .forEach(found::add);
    return found;
  }

  /**
   * The values that commits would have of a column that is encrypted.
   *
   * @param rows the columns that are written
   */
  public static List<String> eventTimes(
      ColumnChoices chosen, Map<String, String> settings, List<String> rows) {
    return columns(settings, EVENT_TIME)
        .filter(column -> rows.contains(column.replaceFirst("\\..*", "")))
        .filter(chosen::encrypts)
        .map(
            column ->
                String.format(
                    "the smallest and the largest value of column '%s' in commits, which are not"
                        + " there with %s=none",
                    column, EVENT_TIME))
        .toList();
  }

  /**
   * Checks that Hudi's own column, which repeats the values of others, has the key that they have,
   * and that there are no files of keys.
   *
   * @param settings of the table, or of the write
   */
  public void checkKeys(ColumnChoices chosen, Map<String, String> settings) {
    KeyFiles.check(chosen, "Hudi table " + folder, TableFormat.HUDI.label());
    if (!hasMetaColumns(settings)) {
      return;
    }

    String own = chosen.key(RECORD_KEY);
    for (String column : recordKeys(settings).toList()) {
      String keyId = chosen.key(column);
      if (keyId != null && !keyId.equals(own)) {
        throw new InvalidConfigurationException(
            String.format(
                "Hudi table %s: column '%s' has key '%s', and %s, which repeats its values, has %s",
                folder, column, keyId, RECORD_KEY, own == null ? "not" : "key '" + own + "'"),
            String.format("Name %s under the same key. Nothing was written.", RECORD_KEY));
      }
    }
  }

  /**
   * Refuses a table of which something would be plaintext.
   *
   * @param allowed whether it may be
   * @param table its folder
   * @param found what would be plaintext
   * @throws PlaintextException when there is any, and it may not be
   */
  public static void checkPlaintext(boolean allowed, String table, List<String> found) {
    if (allowed || found.isEmpty()) {
      return;
    }

    throw new PlaintextException(
        String.format(
            "Hudi table %s: its Parquet files have keys, but this would be, or might be, plaintext,"
                + " or readable with another key: %s",
            table, found.stream().distinct().collect(Collectors.joining("; "))),
        String.format(
            "Set %s=false for the write, or in the table's properties, and only what docs/hudi.md"
                + " lists as safe. To accept all this plaintext, set"
                + " spark.hadoop.%s=allow when Spark starts. Nothing was written.",
            HudiSettings.METADATA, PLAINTEXT));
  }

  /** Whether the write makes it. */
  public boolean isNew() {
    return stored.isEmpty();
  }

  /** Whether Hudi adds its own columns to the rows. */
  public static boolean hasMetaColumns(Map<String, String> settings) {
    return !"false"
        .equalsIgnoreCase(settings.getOrDefault("hoodie.populate.meta.fields", "").trim());
  }

  /** The columns that identify a record: Hudi repeats their values in a column of its own. */
  private static Stream<String> recordKeys(Map<String, String> settings) {
    return columns(
        settings,
        "hoodie.table.recordkey.fields",
        "hoodie.datasource.write.recordkey.field",
        "primaryKey");
  }

  /** The columns whose values are names of folders. */
  private static Stream<String> partitions(Map<String, String> settings) {
    return columns(
        settings,
        "hoodie.table.partition.fields",
        "hoodie.datasource.write.partitionpath.field",
        "__partition_columns"); // in which Spark hands on those of partitionBy
  }

  private static Stream<String> columns(Map<String, String> settings, String... names) {
    return Arrays.stream(names)
        .flatMap(name -> Arrays.stream(settings.getOrDefault(name, "").split(",")))
        .map(name -> name.replaceFirst(":.*", "").replaceAll("[\\[\\]\"\\s]", ""))
        .filter(name -> !name.isEmpty())
        .distinct();
  }
}
