package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.parquet.ParquetCryptoFactory.Choices;
import java.net.URI;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.parquet.SparkToParquetSchemaConverter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A statement that writes a Hudi table: its Parquet files get keys as Spark's own do, but Hudi
 * takes the settings from elsewhere, and writes rows and values into other files, too, which nobody
 * encrypts. Hudi's classes are known by their names.
 *
 * @param folder where the table is
 * @param options of the write, or of the table in SQL, and the session's for Hudi
 * @param schema of the rows
 */
record HudiWrites(Path folder, Map<String, String> options, StructType schema) {
  private static final String OF_SOURCE = "org.apache.hudi.";
  private static final Pattern OF_SQL =
      Pattern.compile(
          "org\\.apache\\.spark\\.sql\\.hudi\\.command\\.(Insert|Create|Update|Delete|Merge)\\w+");
  private static final String PARTITIONS = "hoodie.datasource.write.partitionpath.field";
  private static final String RECORD_KEY = "_hoodie_record_key";
  private static final List<String> META_COLUMNS =
      List.of(
          "_hoodie_commit_time",
          "_hoodie_commit_seqno",
          RECORD_KEY,
          "_hoodie_partition_path",
          "_hoodie_file_name");

  /** What decides on keys, in a Hadoop configuration. */
  private static final List<String> PREFIXES =
      List.of("parquet.encryption.", "parquet.crypto.", "iceberg-crypto.");

  /**
   * Checks a statement before it begins.
   *
   * @throws PlaintextException when rows or values would be plaintext, and that is not allowed
   * @throws InvalidConfigurationException when keys are set where Hudi does not look for them
   */
  static void check(SparkSession spark, LogicalPlan plan) {
    HudiWrites write = of(spark, plan);
    if (write == null) {
      return;
    }

    Configuration hudis = spark.sparkContext().hadoopConfiguration();
    Configuration wanted = new Configuration(spark.sessionState().newHadoopConf());
    write.options.forEach((name, value) -> wanted.set(name, value));
    if (ParquetCryptoFactory.isSet(hudis) || ParquetCryptoFactory.isSet(wanted)) {
      write.checkSettings(hudis, wanted);
      write.check(hudis, ParquetCryptoFactory.choices(wanted));
    }
  }

  private static HudiWrites of(SparkSession spark, LogicalPlan plan) {
    if (plan instanceof SaveIntoDataSourceCommand save) {
      boolean isHudis = save.dataSource().getClass().getName().startsWith(OF_SOURCE);
      return isHudis ? of(spark, save) : null;
    }

    String command = plan.getClass().getName();
    if (!OF_SQL.matcher(command).matches()
        && !(plan instanceof CreateDataSourceTableAsSelectCommand)) {
      return null;
    }

    CatalogTable table = target(plan);
    if (table == null || !isHudis(table)) {
      return null;
    }

    Map<String, String> options = ofSession(spark);
    options.putAll(map(table.storage().properties()));
    options.putAll(map(table.properties()));
    table
        .partitionColumnNames()
        .iterator()
        .foreach(name -> options.merge(PARTITIONS, name, (a, b) -> a + "," + b));
    if (command.endsWith("CreateIndexCommand")) {
      options.put(HudiTable.NEW_INDEX, "true");
    }

    URI location =
        table.storage().locationUri().isDefined()
            ? table.location()
            : spark.sessionState().catalog().defaultTablePath(table.identifier());
    return new HudiWrites(new Path(location), options, schema(table, plan));
  }

  private static boolean isHudis(CatalogTable table) {
    return table.provider().exists(name -> name.toLowerCase(Locale.ROOT).contains("hudi"));
  }

  /** The names of Hudi's options have a case, that of the path has none. */
  private static HudiWrites of(SparkSession spark, SaveIntoDataSourceCommand save) {
    Map<String, String> given = map(save.options());
    Map<String, String> options = ofSession(spark);
    options.putAll(given);
    return given.entrySet().stream()
        .filter(option -> option.getKey().equalsIgnoreCase("path"))
        .findFirst()
        .map(path -> new HudiWrites(new Path(path.getValue()), options, save.query().schema()))
        .orElse(null); // Hudi refuses it
  }

  /** What a session sets for Hudi; that it turns something off may not count for this write. */
  private static Map<String, String> ofSession(SparkSession spark) {
    Map<String, String> options = map(spark.conf().getAll());
    options
        .entrySet()
        .removeIf(
            option ->
                !option.getKey().startsWith("hoodie.")
                    || option.getValue().equalsIgnoreCase("false"));
    return options;
  }

  /** The table that a command of Hudi's writes: the first that it names. */
  private static CatalogTable target(LogicalPlan command) {
    for (var parts = command.productIterator(); parts.hasNext(); ) {
      Object part = parts.next();
      CatalogTable found = part instanceof CatalogTable table ? table : null;
      if (part instanceof MergeIntoTable merge) {
        found = table(merge.targetTable());
      } else if (part instanceof UpdateTable update) {
        found = table(update.table());
      } else if (part instanceof DeleteFromTable delete) {
        found = table(delete.table());
      } else if (part instanceof LogicalPlan other) {
        found = table(other);
      }

      if (found != null) {
        return found;
      }
    }

    return null;
  }

  /** That of the table or, of CREATE TABLE AS SELECT, that of the query. */
  private static StructType schema(CatalogTable table, LogicalPlan command) {
    for (var parts = command.productIterator(); table.schema().isEmpty() && parts.hasNext(); ) {
      if (parts.next() instanceof LogicalPlan query) {
        return query.schema();
      }
    }

    return table.schema();
  }

  private static CatalogTable table(LogicalPlan plan) {
    for (var leaves = plan.collectLeaves().iterator(); leaves.hasNext(); ) {
      if (leaves.next() instanceof LogicalRelation relation
          && relation.catalogTable().isDefined()) {
        return relation.catalogTable().get();
      }
    }

    return null;
  }

  /** Hudi reads SparkContext's configuration alone: what a session or a write sets does nothing. */
  private void checkSettings(Configuration hudis, Configuration wanted) {
    Set<String> different = new TreeSet<>();
    for (String prefix : PREFIXES) {
      Map<String, String> one = hudis.getPropsWithPrefix(prefix);
      Map<String, String> other = wanted.getPropsWithPrefix(prefix);
      Stream.concat(one.keySet().stream(), other.keySet().stream())
          .filter(name -> !Objects.equals(one.get(name), other.get(name)))
          .map(prefix::concat)
          .filter(name -> !name.equals(ParquetCryptoFactory.HUDI_PLAINTEXT))
          .forEach(different::add);
    }

    if (!different.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Hudi table %s: this session, or this write, sets %s, which Hudi does not see",
              folder, String.join(", ", different)),
          "Hudi takes keys from SparkContext's Hadoop configuration: set these as spark.hadoop.*"
              + " when Spark starts, as configure_spark(SparkSession.builder, ...) does, and not"
              + " for a session or as options. Nothing was written.");
    }
  }

  private void check(Configuration hudis, Choices chosen) {
    HudiTable table = HudiTable.of(folder, options, hudis);
    Set<String> found = new LinkedHashSet<>(table.plaintext());
    if (chosen.plaintextFooter()) {
      found.add("the smallest and the largest record key, in plaintext footers");
    }

    for (String column : table.partitions()) {
      if (key(chosen, column) != null) {
        found.add("values of column '" + column + "', in names of folders");
      }
    }

    if (!found.isEmpty() && !chosen.hudiPlaintext() && chosen.namesKeys()) {
      throw new PlaintextException(
          String.format(
              "Hudi table %s would have keys in its Parquet files, and in plaintext: %s",
              folder, String.join("; ", found)),
          String.format(
              "Change the table's settings, see docs/hudi.md. To write it all the same, set"
                  + " %s=allow. Nothing was written.",
              ParquetCryptoFactory.HUDI_PLAINTEXT));
    }

    if (chosen.keysBeside()) {
      throw new NotSupportedException(
          String.format("Hudi table %s: Hudi does not move or clean files of keys", folder),
          "Leave parquet.encryption.key.material.store.internally out: wrapped keys are then in the"
              + " Parquet files. Nothing was written.");
    }

    if (table.hasMetaColumns()) {
      checkRecordKeys(table, chosen);
    }

    if (table.isNew() && !schema.isEmpty()) { // or else the rows may have some columns only
      StructType columns = table.hasMetaColumns() ? withMetaColumns() : schema;
      ParquetCryptoFactory.check(
          hudis,
          folder,
          new SparkToParquetSchemaConverter(SparkSession.active().sessionState().conf())
              .convert(columns));
    }
  }

  /** Who may read Hudi's own column would read the values of the column that has another key. */
  private void checkRecordKeys(HudiTable table, Choices chosen) {
    String own = key(chosen, RECORD_KEY);
    for (String column : table.recordKeys()) {
      String keyId = key(chosen, column);
      if (keyId != null && !keyId.equals(own)) {
        throw new InvalidConfigurationException(
            String.format(
                "Hudi table %s: column '%s' has key '%s', and %s, which repeats its values, has %s",
                folder, column, keyId, RECORD_KEY, own == null ? "not" : "key '" + own + "'"),
            String.format("Name %s under the same key. Nothing was written.", RECORD_KEY));
      }
    }
  }

  /** The key of a column, or of the struct that it is in; null: none of its own. */
  private static String key(Choices chosen, String column) {
    for (String name = column; !name.isEmpty(); name = name.replaceFirst("\\.?[^.]*$", "")) {
      String keyId = chosen.columnKeys().get(name);
      if (keyId != null) {
        return keyId;
      }
    }

    return null;
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

  /** Scala 2.12 and 2.13 alike. */
  private static Map<String, String> map(scala.collection.Map<String, String> scala) {
    Map<String, String> map = new HashMap<>();
    scala.iterator().foreach(entry -> entry._2() == null ? null : map.put(entry._1(), entry._2()));
    return map;
  }
}
