package io.icebergcrypto.spark.session;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.catalog.OtherTables;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.spark.columns.FromScala;
import java.util.Map;
import java.util.Set;
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
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Refuses tables that Spark would create in its session catalog past {@code spark_catalog}, where
 * that would refuse them: those of {@code saveAsTable} without Iceberg's format, of CREATE TABLE
 * ... LIKE and, in the newest versions of 3.5, 4.0 and 4.1, of CREATE TABLE; and properties of
 * ALTER TABLE. Where {@code spark_catalog} is not of this project, see {@link ForgottenCatalog}. A
 * rule of resolution, which changes nothing: checks would come after Spark's own rules.
 */
final class SessionTablesRule extends Rule<LogicalPlan> {
  /** The command of saveAsTable in Spark 4.1, which drops a table before it creates another. */
  private static final String SAVE_AS_TABLE = "SaveAsV1TableCommand";

  private static final Logger LOG = LoggerFactory.getLogger(SessionTablesRule.class);

  private final SparkSession spark;
  private final ForgottenCatalog forgotten;

  SessionTablesRule(SparkSession spark) {
    this.spark = spark;
    this.forgotten = new ForgottenCatalog(spark);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    WriterOfV1.forgetAfterwards();
    if (plan instanceof CreateTable create) {
      checkNew(create.tableDesc(), create.mode());
    } else if (SAVE_AS_TABLE.equals(plan.nodeName())) {
      WriterOfV1.forget(); // of an earlier statement
      CatalogTable table = (CatalogTable) plan.productElement(0);
      SaveMode mode = (SaveMode) plan.productElement(1);
      checkNew(table, mode);
      check(table.identifier(), (others, name) -> WriterOfV1.allow(name));
      if (mode == SaveMode.Overwrite && encryptedOrNull() == null) { // not dropped yet
        forgotten.check(table, properties(table).keySet());
      }
    } else if (plan instanceof CreateTableLikeCommand create) {
      Map<String, String> properties = FromScala.map(create.properties());
      checkNew(create.targetTable(), properties, SaveMode.Ignore);
      if (isNewElsewhere(create.targetTable(), SaveMode.Ignore)) {
        forgotten.checkLike(create, properties.keySet());
      }
    } else if (plan instanceof AlterTableSetPropertiesCommand alter && !alter.isView()) {
      Set<String> properties = FromScala.map(alter.properties()).keySet();
      check(alter.tableName(), (others, name) -> others.checkProperties(name, properties));
      if (encryptedOrNull() == null) {
        forgotten.checkExisting(alter.tableName(), properties);
      }
    }

    return plan;
  }

  private void checkNew(CatalogTable table, SaveMode mode) {
    Map<String, String> properties = properties(table);
    checkNew(table.identifier(), properties, mode);
    if (isNewElsewhere(table.identifier(), mode)) {
      forgotten.check(table, properties.keySet());
    }
  }

  private static Map<String, String> properties(CatalogTable table) {
    Map<String, String> properties = FromScala.map(table.properties());
    properties.putAll(FromScala.map(table.storage().properties())); // options
    return properties;
  }

  /**
   * Whether a catalog that is not ours gets a table's properties. Where one is replaced, it may
   * have been dropped by now, and a refusal would lose it.
   */
  private boolean isNewElsewhere(TableIdentifier table, SaveMode mode) {
    return encryptedOrNull() == null
        && mode != SaveMode.Overwrite
        && (mode == SaveMode.Append || !spark.sessionState().catalog().tableExists(table));
  }

  /**
   * A table that is there is replaced, appended to or left alone, as the mode says. Where one was
   * replaced with a check, it has been dropped, and nothing is refused any more.
   */
  private void checkNew(TableIdentifier table, Map<String, String> properties, SaveMode mode) {
    check(
        table,
        (others, name) -> {
          if (mode == SaveMode.Overwrite && WriterOfV1.wasAllowed(name)) {
            properties.keySet().stream()
                .filter(PropertyNames::isOfEncryption)
                .forEach(
                    option ->
                        LOG.warn("{} of {} does nothing: its rows are plaintext", option, name));
          } else if (mode == SaveMode.Overwrite
              || !spark.sessionState().catalog().tableExists(table)) {
            others.checkNew(name, properties);
          } else if (mode == SaveMode.Append) {
            others.checkName(name);
            others.checkProperties(name, properties.keySet());
          }
        });
  }

  private void check(
      TableIdentifier name,
      BiConsumer<OtherTables, org.apache.iceberg.catalog.TableIdentifier> check) {
    EncryptedCatalog encrypted = encryptedOrNull();
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

  private EncryptedCatalog encryptedOrNull() {
    return EngineCatalog.encryptedOrNull(spark.sessionState().catalogManager().v2SessionCatalog());
  }
}
