package io.icebergcrypto.spark.parquet;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.parquet.tables.DeltaStatistics;
import io.icebergcrypto.spark.columns.FromScala;
import io.icebergcrypto.spark.columns.LateSettings;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTable;
import org.apache.spark.sql.catalyst.plans.logical.CreateTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTable;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceTableAsSelect;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.TableSpecBase;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.SaveIntoDataSourceCommand;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSourceV1;
import scala.Product;
import scala.runtime.BoxedUnit;

/**
 * Properties that Delta has in its log, and mixes into the settings of a session: into those of
 * writes the properties of a table, into those of reads the options of its format. Whoever can
 * write there could switch encryption off, or name a KMS that gets credentials.
 */
final class DeltaProperties {
  private DeltaProperties() {}

  /**
   * Checks a statement that writes a table, or its properties.
   *
   * @throws InvalidConfigurationException when they would replace settings of this session
   */
  static void checkWrite(LogicalPlan plan) {
    if (plan instanceof SaveIntoDataSourceCommand save && OtherWrites.isDeltas(save.dataSource())) {
      if (save.dataSource() instanceof TableProvider delta && save.options().contains("path")) {
        Map<String, String> options = FromScala.map(save.options());
        check("the table", delta.getTable(null, new Transform[0], options).properties());
      }
    } else if (plan instanceof V2WriteCommand write) {
      check(write.table());
    } else if (plan instanceof WriteToMicroBatchDataSourceV1 stream
        && OtherWrites.isDeltas(stream.sink())) {
      checkStream((Product) stream.sink());
    } else if (plan instanceof SetTableProperties set) {
      if (set.table() instanceof ResolvedTable table
          && OtherWrites.isDeltas((Object) table.table())) {
        check("the table", FromScala.map(set.properties()));
      }
    } else if (plan instanceof CreateTable create) {
      check(create.tableSpec());
    } else if (plan instanceof CreateTableAsSelect create) {
      check(create.tableSpec());
    } else if (plan instanceof ReplaceTable replace) {
      check(replace.tableSpec());
    } else if (plan instanceof ReplaceTableAsSelect replace) {
      check(replace.tableSpec());
    } else if (OtherWrites.isDeltas((Object) plan) && !plan.nodeName().startsWith("Describe")) {
      checkCommand(plan);
    }
  }

  /**
   * Checks a read.
   *
   * @throws InvalidConfigurationException when options in Delta's log would replace settings of
   *     this session
   */
  static void checkRead(HadoopFsRelation files) {
    if (OtherWrites.isDeltas((Object) files.fileFormat())) {
      check("the table", FromScala.map(files.options()));
    }
  }

  /** Whatever tables a command of Delta's has, in Delta's own classes. */
  private static void checkCommand(LogicalPlan command) {
    for (Object part : FromScala.parts(command)) {
      if (part instanceof Table table) {
        check(table.name(), table.properties());
      } else if (part instanceof LogicalPlan other) {
        other.foreach(DeltaProperties::check);
      }
    }
  }

  private static BoxedUnit check(Object plan) {
    if (plan instanceof DataSourceV2Relation relation
        && OtherWrites.isDeltas((Object) relation.table())) {
      check(relation.table().name(), relation.table().properties());
    } else if (plan instanceof ResolvedTable relation
        && OtherWrites.isDeltas((Object) relation.table())) {
      check(relation.table().name(), relation.table().properties());
    } else if (plan instanceof LogicalRelation relation
        && relation.relation() instanceof HadoopFsRelation files
        && OtherWrites.isDeltas((Object) files.fileFormat())
        && files.fileFormat() instanceof Product format) {
      check("the table", properties(format));
    }

    return BoxedUnit.UNIT;
  }

  private static void check(TableSpecBase created) {
    if (isDeltas(created)) {
      check("the table", FromScala.map(created.properties()));
    }
  }

  static boolean isDeltas(TableSpecBase created) {
    return created.provider().isDefined() && "delta".equalsIgnoreCase(created.provider().get());
  }

  private static void checkStream(Product sink) {
    for (Object part : FromScala.parts(sink)) {
      if (part instanceof Path folder) {
        LogicalPlan table;
        try {
          table =
              SparkSession.active()
                  .read()
                  .format("delta")
                  .load(folder.toString())
                  .queryExecution()
                  .analyzed();
        } catch (Exception e) { // Spark's own are checked by Java
          if (e instanceof InvalidConfigurationException) {
            throw e;
          }

          return; // the table does not exist yet, or the stream finds out what is wrong
        }

        table.foreach(DeltaProperties::check);
      }
    }
  }

  /** The properties of a table, which its file format has within Delta's own metadata. */
  private static Map<String, String> properties(Product format) {
    Map<String, String> found = new HashMap<>();
    for (Object part : FromScala.parts(format)) {
      if (part instanceof Product metadata && "Metadata".equals(metadata.productPrefix())) {
        for (Object field : FromScala.parts(metadata)) {
          if (field instanceof scala.collection.Map<?, ?> map) {
            map.foreach(one -> found.put(String.valueOf(one._1()), String.valueOf(one._2())));
          }
        }
      }
    }

    return found;
  }

  private static void check(String target, Map<String, String> properties) {
    Configuration session = SparkSession.active().sessionState().newHadoopConf();
    List<String> unlike = LateSettings.unlike(properties, DeltaStatistics::decides, session::get);
    if (!unlike.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format(
              "Properties of %s would replace settings of this session: %s",
              target, String.join(", ", unlike)),
          "Only the session says how the files of Delta's tables are encrypted: Delta's log could"
              + " be anyone's. If they are in the log, find out who set them (DESCRIBE HISTORY),"
              + " and remove them: ALTER TABLE ... UNSET TBLPROPERTIES (...). Nothing was"
              + " written.");
    }
  }
}
