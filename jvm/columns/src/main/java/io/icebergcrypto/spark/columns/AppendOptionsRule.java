package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.CreateTable;
import scala.collection.immutable.Map;

/**
 * Refuses keys among the options of a write that appends to a table: Spark drops these options, and
 * writes with the table's. It does so early, so this is a rule of resolution, which changes
 * nothing.
 */
final class AppendOptionsRule extends Rule<LogicalPlan> {
  private final FormatChecks format;

  /** Checks the options of one format. */
  AppendOptionsRule(FormatChecks format) {
    this.format = format;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof CreateTable append
        && append.query().isDefined()
        && append.mode() == SaveMode.Append) {
      Map<String, String> options = append.tableDesc().storage().properties();
      CatalogTable table =
          options.keysIterator().exists(format::concernsKeys) // or the metastore need not be asked
              ? FormatChecks.tableOrNull(append.tableDesc().identifier())
              : null;
      if (table != null) {
        check(options, table);
      }
    }

    return plan;
  }

  private void check(Map<String, String> options, CatalogTable table) {
    if (!format.isOf(table) && !format.isOfHive(table)) {
      return;
    }

    Map<String, String> own = table.storage().properties();
    FromScala.map(options)
        .forEach(
            (name, value) -> {
              if (format.concernsKeys(name) && !own.get(name).contains(value)) {
                throw new InvalidConfigurationException(
                    String.format(
                        "Spark drops option %s of a write that appends to table %s",
                        name, table.identifier().unquotedString()),
                    "Leave it out, to write with the keys of the table's OPTIONS or else of the"
                        + " session, or set it for the session. Nothing was written.");
              }
            });
  }
}
