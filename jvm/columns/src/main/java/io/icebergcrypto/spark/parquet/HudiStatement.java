package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.parquet.tables.TableFormat;
import io.icebergcrypto.spark.columns.FromScala;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.execution.command.CreateDataSourceTableAsSelectCommand;
import org.apache.spark.sql.execution.command.CreateDataSourceTableCommand;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.types.StructType;

/**
 * A statement that Hudi carries out, and that is not known to write nothing. Its classes are known
 * by their names.
 *
 * @param name of the statement, for errors
 * @param table that it names; null: none, or options name a folder
 * @param options of the write, or of the table
 * @param schema of the rows, as far as it is known
 * @param isSql whether it is SQL, for which Hudi heeds what a session sets
 */
record HudiStatement(
    String name,
    CatalogTable table,
    Map<String, String> options,
    StructType schema,
    boolean isSql) {
  /** What reads, or removes. */
  private static final Pattern SAFE =
      Pattern.compile("(Show|DropHoodieTable|TruncateHoodie|CompactionShow).*Command");

  private static final Pattern SAFE_PROCEDURES =
      Pattern.compile("(Show|Help|DeleteMetadataTable).*Procedure");

  /** The statement; null: it is not Hudi's, or is safe. */
  static HudiStatement of(LogicalPlan plan) {
    String className = plan.getClass().getName();
    if (plan instanceof SaveIntoDataSourceCommand save) {
      // UPDATE and others write in this way, with options of Hudi's own; they were checked before
      boolean isUsers = !TableFormat.calling().equals(Optional.of(TableFormat.HUDI));
      return isHudis(save.dataSource()) && isUsers
          ? new HudiStatement(
              "a write", null, FromScala.map(save.options()), save.query().schema(), false)
          : null;
    } else if (plan.nodeName().startsWith("WriteToStream")) {
      return FromScala.parts(plan).stream().anyMatch(HudiStatement::isHudis)
          ? new HudiStatement("a stream", null, Map.of(), new StructType(), false)
          : null;
    } else if (plan instanceof Command && isHudis(plan)) {
      return isSafe(plan) ? null : inSql(plan, target(plan));
    } else if (plan instanceof CreateDataSourceTableAsSelectCommand
        || plan instanceof CreateDataSourceTableCommand) {
      CatalogTable table = target(plan);
      return table != null && HudiWrites.isHudis(table) ? inSql(plan, table) : null;
    }

    return null;
  }

  private static boolean isHudis(Object one) {
    return TableFormat.HUDI.owns(one.getClass().getName());
  }

  private static boolean isSafe(LogicalPlan plan) {
    return SAFE.matcher(plan.getClass().getSimpleName()).matches()
        || FromScala.parts(plan).stream()
            .map(part -> part.getClass().getSimpleName())
            .anyMatch(part -> SAFE_PROCEDURES.matcher(part).matches());
  }

  private static HudiStatement inSql(LogicalPlan plan, CatalogTable table) {
    if (table == null) {
      return new HudiStatement(plan.nodeName(), null, Map.of(), new StructType(), true);
    }

    Map<String, String> options = FromScala.map(table.storage().properties());
    options.putAll(FromScala.map(table.properties()));
    return new HudiStatement(plan.nodeName(), table, options, schema(table, plan), true);
  }

  /** The table that a command of Hudi's writes: the first that it names. */
  private static CatalogTable target(LogicalPlan command) {
    for (Object part : FromScala.parts(command)) {
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
    for (Object part : FromScala.parts(command)) {
      if (table.schema().isEmpty() && part instanceof LogicalPlan query) {
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
}
