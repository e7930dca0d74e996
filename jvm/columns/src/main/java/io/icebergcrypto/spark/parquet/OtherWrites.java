package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.config.SessionProperties;
import io.icebergcrypto.parquet.ParquetCryptoFactory;
import io.icebergcrypto.parquet.tables.ColumnChoices;
import io.icebergcrypto.parquet.tables.DeltaStatistics;
import io.icebergcrypto.parquet.tables.KeyFiles;
import io.icebergcrypto.parquet.tables.TableFormat;
import io.icebergcrypto.spark.columns.FormatChecks;
import io.icebergcrypto.spark.columns.FromScala;
import io.icebergcrypto.spark.columns.LateSettings;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.V2CreateTableAsSelectPlan;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetTable;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;

/**
 * Statements of other programs that write tables, such as Delta: they give no options to Parquet.
 *
 * @param target what is written, for errors
 * @param options of the write
 */
record OtherWrites(String target, Map<String, String> options) {
  /** Commands of Delta's that read rows, for its log, as a query does. */
  private static final List<String> DELTA_READS = List.of("ConvertToDelta", "CloneTable");

  /**
   * Checks a statement before it begins.
   *
   * @throws InvalidConfigurationException when settings of keys, or of Delta's statistics, are
   *     where they do nothing
   * @throws PlaintextException when Delta would read values of columns with keys into its log
   */
  static void check(SparkSession spark, LogicalPlan plan) {
    OtherWrites write = of(plan);
    if (write != null) {
      write.checkOptions(spark);
    }

    if ((plan instanceof Command || plan instanceof WriteToMicroBatchDataSourceV1)
        && isDeltas(plan)) {
      LateSettings.check(spark, SessionProperties::isOfParquet);
      Configuration hadoop = spark.sessionState().newHadoopConf();
      if (ParquetCryptoFactory.isSet(hadoop)) {
        checkDelta(hadoop, plan);
      }
    }
  }

  private static OtherWrites of(LogicalPlan plan) {
    if (plan instanceof SaveIntoDataSourceCommand save) {
      String name = save.dataSource().getClass().getName();
      return TableFormat.HUDI.owns(name)
          ? null
          : new OtherWrites(name, FromScala.map(save.options()));
    } else if (plan instanceof AppendData write) {
      return of(write.table(), write.writeOptions());
    } else if (plan instanceof OverwriteByExpression write) {
      return of(write.table(), write.writeOptions());
    } else if (plan instanceof OverwritePartitionsDynamic write) {
      return of(write.table(), write.writeOptions());
    } else if (plan instanceof CreateTableAsSelect write) {
      return new OtherWrites("the table", FromScala.map(write.writeOptions()));
    } else if (plan instanceof ReplaceTableAsSelect write) {
      return new OtherWrites("the table", FromScala.map(write.writeOptions()));
    }

    return null;
  }

  private static OtherWrites of(
      NamedRelation table, scala.collection.immutable.Map<String, String> options) {
    boolean takesThem =
        table instanceof DataSourceV2Relation relation && relation.table() instanceof ParquetTable;
    return takesThem ? null : new OtherWrites(table.name(), FromScala.map(options));
  }

  private void checkOptions(SparkSession spark) {
    if (options.keySet().stream().noneMatch(SessionProperties::isOfParquet)) {
      return;
    }

    List<String> ignored = ParquetWrites.unlike(options, spark.sessionState().newHadoopConf());
    if (!ignored.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Options of a write to %s set %s, which do nothing there",
              target, String.join(", ", ignored)),
          "Only Spark's own Parquet files take keys from options. Delta takes those of the session;"
              + " Iceberg's tables have encryption.key-id. Nothing was written.");
    }
  }

  static boolean isDeltas(LogicalPlan plan) {
    return isDeltas((Object) plan)
        || plan instanceof SaveIntoDataSourceCommand save && isDeltas(save.dataSource())
        || plan instanceof V2WriteCommand write && isDeltas(write.table())
        || plan instanceof CreateTableAsSelect create
            && DeltaProperties.isDeltas(create.tableSpec())
        || plan instanceof ReplaceTableAsSelect create
            && DeltaProperties.isDeltas(create.tableSpec())
        || plan instanceof WriteToMicroBatchDataSourceV1 stream && isDeltas(stream.sink());
  }

  /** The rows that a statement writes; null: it has none that Spark sees. */
  private static LogicalPlan rows(LogicalPlan plan) {
    if (plan instanceof SaveIntoDataSourceCommand save) {
      return save.query();
    } else if (plan instanceof V2WriteCommand write) {
      return write.query();
    } else if (plan instanceof V2CreateTableAsSelectPlan create) {
      return create.query();
    }

    return plan instanceof WriteToMicroBatchDataSourceV1 stream ? stream.query() : null;
  }

  private static boolean isDeltas(NamedRelation table) {
    return table instanceof DataSourceV2Relation relation && isDeltas((Object) relation.table());
  }

  static boolean isDeltas(Object one) {
    String name = one.getClass().getName();
    return TableFormat.DELTA.owns(name) || TableFormat.DELTA_KERNEL.owns(name);
  }

  private static void checkDelta(Configuration hadoop, LogicalPlan plan) {
    ColumnChoices chosen = ParquetCryptoFactory.choices(hadoop);
    KeyFiles.check(chosen, plan.nodeName(), TableFormat.DELTA.label());
    LogicalPlan rows = rows(plan);
    if (rows != null && chosen.namesKeys()) {
      FormatChecks.checkNotes("a Delta table", rows.schema());
    }

    if (DeltaStatistics.isOff(hadoop) || !chosen.namesKeys()) {
      return;
    }

    for (String name : List.of(DeltaStatistics.COLUMNS, DeltaStatistics.COUNT)) {
      if (hadoop.get(name) != null) {
        throw new InvalidConfigurationException(
            String.format("This session sets %s, which Delta reads only as a table property", name),
            String.format(
                "Make it a property of the table, or set %s=false for the session. Nothing was"
                    + " written.",
                DeltaStatistics.COLLECT));
      }
    }

    if (DELTA_READS.stream().anyMatch(plan.toString()::contains)) {
      throw new PlaintextException(
          String.format(
              "%s would read the smallest and largest values of columns, which may have keys, into"
                  + " Delta's log, in plaintext",
              plan.nodeName()),
          String.format(
              "Set %s=false for the session. Nothing was written.", DeltaStatistics.COLLECT));
    }
  }
}
