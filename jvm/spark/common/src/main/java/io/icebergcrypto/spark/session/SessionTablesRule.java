package io.icebergcrypto.spark.session;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.catalog.OtherTables;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.command.AlterTableSetPropertiesCommand;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.datasources.CreateTable;
import scala.runtime.BoxedUnit;

/**
 * Refuses tables that Spark would create in its session catalog past {@code spark_catalog}, where
 * that would refuse them: those of {@code saveAsTable} without Iceberg's format, of CREATE TABLE
 * ... LIKE and, in the newest versions of 3.5, 4.0 and 4.1, of CREATE TABLE; and properties of
 * ALTER TABLE. A rule of resolution, which changes nothing: checks would come after Spark's own
 * rules.
 */
final class SessionTablesRule extends Rule<LogicalPlan> {
  /** The command of saveAsTable in Spark 4.1, which drops a table before it creates another. */
  private static final String SAVE_AS_TABLE = "SaveAsV1TableCommand";

  private final SparkSession spark;

  SessionTablesRule(SparkSession spark) {
    this.spark = spark;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof CreateTable create) {
      checkNew(create.tableDesc(), create.mode());
    } else if (SAVE_AS_TABLE.equals(plan.nodeName())) {
      checkNew((CatalogTable) plan.productElement(0), (SaveMode) plan.productElement(1));
    } else if (plan instanceof CreateTableLikeCommand create) {
      checkNew(create.targetTable(), put(create.properties(), new HashMap<>()), SaveMode.Ignore);
    } else if (plan instanceof AlterTableSetPropertiesCommand alter && !alter.isView()) {
      Map<String, String> properties = put(alter.properties(), new HashMap<>());
      check(alter.tableName(), (others, name) -> others.checkProperties(name, properties.keySet()));
    }

    return plan;
  }

  private static Map<String, String> put(
      scala.collection.immutable.Map<String, String> from, Map<String, String> into) {
    from.iterator()
        .foreach(
            property -> {
              into.put(property._1(), property._2());
              return BoxedUnit.UNIT;
            });
    return into;
  }

  private void checkNew(CatalogTable table, SaveMode mode) {
    Map<String, String> properties = put(table.properties(), new HashMap<>());
    put(table.storage().properties(), properties); // options
    checkNew(table.identifier(), properties, mode);
  }

  /** A table that is there is replaced, appended to or left alone, as the mode says. */
  private void checkNew(TableIdentifier table, Map<String, String> properties, SaveMode mode) {
    check(
        table,
        (others, name) -> {
          if (mode == SaveMode.Overwrite || !spark.sessionState().catalog().tableExists(table)) {
            others.checkNew(name, properties);
          } else if (mode == SaveMode.Append) {
            others.checkName(name);
          }
        });
  }

  private void check(
      TableIdentifier name,
      BiConsumer<OtherTables, org.apache.iceberg.catalog.TableIdentifier> check) {
    EncryptedCatalog encrypted =
        EngineCatalog.encryptedOrNull(spark.sessionState().catalogManager().v2SessionCatalog());
    if (encrypted != null) {
      String database =
          name.database().isDefined()
              ? name.database().get()
              : spark.sessionState().catalog().getCurrentDatabase();
      check.accept(
          encrypted.context().otherTables(),
          org.apache.iceberg.catalog.TableIdentifier.of(database, name.table()));
    }
  }
}
