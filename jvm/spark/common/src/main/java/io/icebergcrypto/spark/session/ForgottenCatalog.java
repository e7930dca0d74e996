package io.icebergcrypto.spark.session;

import io.icebergcrypto.catalog.OtherTables;
import io.icebergcrypto.spark.columns.FromScala;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import scala.Option;

/**
 * Refuses properties of encryption where a statement has left out the name of its catalog: {@code
 * spark_catalog} is not of this project, others of the session are, and Spark is about to create a
 * table of a format of its own, whose rows would be plaintext.
 *
 * <p>What another catalog as {@code spark_catalog} may encrypt itself is left alone: Iceberg tables
 * and formats of other vendors. So are sessions without a catalog of this project.
 */
record ForgottenCatalog(SparkSession spark) {
  private static final String CATALOGS = "spark.sql.catalog.";

  /** Spark's own formats of files. */
  private static final Set<String> FORMATS =
      Set.of("avro", "csv", "hive", "json", "orc", "parquet", "text", "xml");

  void check(CatalogTable table, Set<String> properties) {
    boolean isIceberg =
        "iceberg".equalsIgnoreCase(FromScala.map(table.properties()).get("table_type"));
    if (!isIceberg) { // of another engine, in the metastore
      check(table.identifier(), table.provider(), properties);
    }
  }

  void checkExisting(TableIdentifier table, Set<String> properties) {
    existing(table).ifPresent(found -> check(found, properties));
  }

  void checkLike(CreateTableLikeCommand create, Set<String> properties) {
    check(create.targetTable(), formatOf(create), properties);
  }

  /** As Spark's command chooses it. */
  private Option<String> formatOf(CreateTableLikeCommand create) {
    if (create.provider().isDefined()) {
      return create.provider();
    }

    if (create.fileFormat().inputFormat().isDefined()) { // STORED AS
      return Option.apply("hive");
    }

    CatalogTable source = // Spark's command, too, fails without one
        spark.sessionState().catalog().getTempViewOrPermanentTableMetadata(create.sourceTable());
    return source.tableType().equals(CatalogTableType.VIEW())
        ? Option.apply(spark.sessionState().conf().defaultDataSourceName())
        : source.provider();
  }

  private Optional<CatalogTable> existing(TableIdentifier table) {
    try {
      return Optional.of(spark.sessionState().catalog().getTableMetadata(table));
    } catch (AnalysisException e) {
      return Optional.empty(); // Spark itself will say so
    }
  }

  private void check(TableIdentifier table, Option<String> format, Set<String> properties) {
    if (format.isEmpty() || !FORMATS.contains(format.get().toLowerCase(Locale.ROOT))) {
      return;
    }

    String database =
        table.database().isDefined()
            ? table.database().get()
            : spark.sessionState().catalog().getCurrentDatabase();
    String name = database + "." + table.table();
    String instead =
        FromScala.map(spark.sessionState().conf().getAllConfs()).entrySet().stream()
            .filter(ForgottenCatalog::isOurs)
            .map(setting -> setting.getKey().substring(CATALOGS.length()) + "." + name)
            .sorted()
            .collect(Collectors.joining(" or "));
    if (!instead.isEmpty()) {
      OtherTables.checkProperties(
          "spark_catalog." + name,
          properties,
          String.format(
              "For an encrypted table, name its catalog: %s. A name without one is of"
                  + " spark_catalog.",
              instead));
    }
  }

  /** Not the catalog of paths, which has no table of such a name. */
  private static boolean isOurs(Map.Entry<String, String> setting) {
    return setting.getKey().startsWith(CATALOGS)
        && !setting.getKey().substring(CATALOGS.length()).contains(".")
        && !setting.getKey().equals(CATALOGS + "default_iceberg")
        && setting.getValue().startsWith("io.icebergcrypto.spark.");
  }
}
