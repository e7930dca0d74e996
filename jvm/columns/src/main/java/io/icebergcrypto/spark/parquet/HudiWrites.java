package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.parquet.tables.ColumnChoices;
import io.icebergcrypto.parquet.tables.HudiDefaults;
import io.icebergcrypto.parquet.tables.HudiSettings;
import io.icebergcrypto.parquet.tables.HudiTable;
import io.icebergcrypto.spark.columns.FromScala;
import io.icebergcrypto.spark.columns.LateSettings;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A statement that writes a Hudi table: its Parquet files get keys as Spark's own do, but Hudi
 * takes the settings from elsewhere, and writes rows and values into other files, too, which nobody
 * encrypts. What is stored of the table is checked again where its files are written.
 *
 * @param folder where the table is
 * @param settings of the write or of the table, by where they are set
 * @param metadataOff whether settings that Hudi heeds in such a statement turn the metadata table
 *     off
 * @param options of the write, or of the table in SQL
 * @param schema of the rows
 */
record HudiWrites(
    Path folder,
    Map<String, Map<String, String>> settings,
    boolean metadataOff,
    Map<String, String> options,
    StructType schema) {
  private static final String OWN = "hoodie.";
  private static final String PARTITIONS = "hoodie.datasource.write.partitionpath.field";
  private static final List<String> META_COLUMNS =
      List.of(
          "_hoodie_commit_time",
          "_hoodie_commit_seqno",
          "_hoodie_record_key",
          "_hoodie_partition_path",
          "_hoodie_file_name");

  /**
   * Checks a statement before it begins.
   *
   * @throws PlaintextException when rows or values would be plaintext, and that is not allowed
   * @throws InvalidConfigurationException when keys are set where Hudi does not look for them
   */
  static void check(SparkSession spark, LogicalPlan plan) {
    HudiStatement statement = HudiStatement.of(plan);
    if (statement == null) {
      return;
    }

    LateSettings.check(spark, SessionProperties::isOfParquet);
    Configuration hudis = spark.sparkContext().hadoopConfiguration();
    Configuration wanted = spark.sessionState().newHadoopConf();
    Map<String, String> options = new HashMap<>(statement.options());
    options.forEach( // Hadoop's names have a case, and those of options none
        (name, value) ->
            wanted.set(
                SessionProperties.isOfParquet(name) ? name.toLowerCase(Locale.ROOT) : name, value));
    if (!ParquetCryptoFactory.isSet(hudis) && !ParquetCryptoFactory.isSet(wanted)) {
      return;
    }

    Path folder = folder(spark, statement);
    checkSettings(folder == null ? "of " + statement.name() : folder.toString(), hudis, wanted);
    ColumnChoices chosen = ParquetCryptoFactory.choices(hudis);
    if (!chosen.namesKeys()) {
      return;
    }

    if (folder == null) {
      HudiTable.checkPlaintext(
          chosen.hudiPlaintext(),
          "of " + statement.name(),
          List.of("whatever this statement writes"));
      return;
    }

    of(spark, statement, folder, options, hudis).check(hudis, chosen);
  }

  private static HudiWrites of(
      SparkSession spark,
      HudiStatement statement,
      Path folder,
      Map<String, String> options,
      Configuration hudis) {
    options
        .keySet()
        .removeIf(name -> SessionProperties.isOfParquet(name) || name.startsWith("parquet."));
    options.keySet().removeIf(name -> name.equalsIgnoreCase("path"));
    Map<String, String> session = ofSession(spark);
    Map<String, String> defaults = HudiDefaults.read(System.getenv("HUDI_CONF_DIR"), hudis);
    Map<String, String> ofHadoop = new HashMap<>();
    hudis.getPropsWithPrefix(OWN).forEach((name, value) -> ofHadoop.put(OWN + name, value));
    boolean metadataOff =
        HudiSettings.turnMetadataOff(options)
            || HudiSettings.turnMetadataOff(defaults)
            || statement.isSql() && HudiSettings.turnMetadataOff(session);
    return new HudiWrites(
        folder,
        Map.of(
            statement.isSql() ? "its properties" : "options",
            options,
            "this session",
            session,
            "SparkContext's Hadoop configuration",
            ofHadoop,
            "hudi-defaults.conf",
            defaults),
        metadataOff,
        withOthers(statement, options, session),
        statement.schema());
  }

  /** With what Hudi takes from elsewhere: partitions, and the column of event times. */
  private static Map<String, String> withOthers(
      HudiStatement statement, Map<String, String> options, Map<String, String> session) {
    Map<String, String> all = new HashMap<>(options);
    String eventTime = statement.isSql() ? session.get(HudiTable.EVENT_TIME) : null;
    all.putIfAbsent(
        HudiTable.EVENT_TIME, Objects.requireNonNullElse(eventTime, HudiTable.DEFAULT_EVENT_TIME));
    if (statement.table() != null) {
      statement
          .table()
          .partitionColumnNames()
          .iterator()
          .foreach(name -> all.merge(PARTITIONS, name, (a, b) -> a + "," + b));
    }

    return all;
  }

  /** As versions of Hudi read them: by their own names, or below {@code spark.}. */
  private static Map<String, String> ofSession(SparkSession spark) {
    Map<String, String> found = new HashMap<>();
    FromScala.map(spark.conf().getAll())
        .forEach(
            (name, value) -> {
              String own = name.startsWith("spark." + OWN) ? name.substring(6) : name;
              if (own.startsWith(OWN)) {
                found.merge(own, value, HudiSettings::both);
              }
            });
    return found;
  }

  private static Path folder(SparkSession spark, HudiStatement statement) {
    CatalogTable table = statement.table();
    if (table != null) {
      URI location =
          table.storage().locationUri().isDefined()
              ? table.location()
              : spark.sessionState().catalog().defaultTablePath(table.identifier());
      return new Path(location);
    }

    // the names of Hudi's options have a case, that of the path has none
    return statement.options().entrySet().stream()
        .filter(option -> option.getKey().equalsIgnoreCase("path"))
        .findFirst()
        .map(path -> new Path(path.getValue()))
        .orElse(null);
  }

  /** Hudi reads SparkContext's configuration alone: what a session or a write sets does nothing. */
  private static void checkSettings(String table, Configuration hudis, Configuration wanted) {
    Set<String> different = new TreeSet<>();
    for (String prefix : SessionProperties.OF_PARQUET) {
      Map<String, String> one = hudis.getPropsWithPrefix(prefix);
      Map<String, String> other = wanted.getPropsWithPrefix(prefix);
      Stream.concat(one.keySet().stream(), other.keySet().stream())
          .filter(name -> !Objects.equals(one.get(name), other.get(name)))
          .map(prefix::concat)
          .forEach(different::add);
    }

    if (!different.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Hudi table %s: this session, or this write, sets %s, which Hudi does not see",
              table, String.join(", ", different)),
          "Hudi takes keys from SparkContext's Hadoop configuration: set these as spark.hadoop.*"
              + " when Spark starts, as configure_spark(SparkSession.builder, ...) does, and not"
              + " for a session or as options. Nothing was written.");
    }
  }

  private void check(Configuration hudis, ColumnChoices chosen) {
    HudiTable table = HudiTable.of(folder, hudis);
    List<String> found = new ArrayList<>(table.plaintext(chosen));
    settings.forEach(
        (source, set) ->
            HudiSettings.unknown(set).stream()
                .map(setting -> setting + " (" + source + ")")
                .forEach(found::add));
    List<String> rows = List.of(schema.fieldNames());
    Stream.concat(Stream.of(options), settings.values().stream())
        .flatMap(set -> HudiTable.eventTimes(chosen, set, rows).stream())
        .forEach(found::add);
    if (!metadataOff) {
      found.add(
          "column statistics in a metadata table, as "
              + HudiSettings.METADATA
              + " is not false for it");
    }

    found.addAll(HudiTable.plaintext(chosen, options));
    HudiTable.checkPlaintext(chosen.hudiPlaintext(), folder.toString(), found);
    table.checkKeys(chosen, table.stored());
    table.checkKeys(chosen, options);
    if (table.isNew() && !schema.isEmpty()) { // or else the rows may have some columns only
      StructType columns = HudiTable.hasMetaColumns(options) ? withMetaColumns() : schema;
      ParquetCryptoFactory.check(
          hudis,
          folder,
          new SparkToParquetSchemaConverter(SparkSession.active().sessionState().conf())
              .convert(columns));
    }
  }

  private StructType withMetaColumns() {
    StructType all = new StructType();
    for (String name : META_COLUMNS) {
      all = all.add(name, DataTypes.StringType);
    }

    for (StructField field : schema.fields()) {
      all = META_COLUMNS.contains(field.name()) ? all : all.add(field);
    }

    return all;
  }

  static boolean isHudis(CatalogTable table) {
    return table.provider().exists(name -> name.toLowerCase(Locale.ROOT).contains("hudi"));
  }
}
