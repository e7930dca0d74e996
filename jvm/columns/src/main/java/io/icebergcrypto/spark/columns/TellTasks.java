package io.icebergcrypto.spark.columns;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.SettingsGuard;
import io.icebergcrypto.parquet.tables.DeltaStatistics;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Map;
import scala.runtime.BoxedUnit;

/**
 * Checks a session's settings, and options of reads, and tells the tasks of this thread which of
 * them they may have. It changes nothing. It comes when Spark has analyzed a statement, and again
 * when a query is planned, perhaps in another thread.
 */
final class TellTasks extends Rule<LogicalPlan> {
  private static final Logger LOG = LoggerFactory.getLogger(TellTasks.class);

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    SparkSession spark = SparkSession.active();
    Configuration session = spark.sessionState().newHadoopConf();
    java.util.Map<String, String> deciding = DeltaStatistics.deciding(session);
    SettingsGuard.ALL.forEach(guard -> guard.tell(deciding));
    try {
      Protections.guarded(session);
    } catch (InvalidConfigurationException e) {
      LOG.debug("Tasks may not use the KMS of this session", e); // what needs it is refused
    }

    plan.foreach(
        node -> {
          Map<String, String> options = options(node);
          if (options != null && options.keysIterator().exists(StoredOptions::isOfKms)) {
            Protections.guarded(spark.sessionState().newHadoopConfWithOptions(options));
          }

          return BoxedUnit.UNIT;
        });
    return plan;
  }

  /** Those of a statement: not of a table, which are not its user's. */
  private static Map<String, String> options(LogicalPlan plan) {
    if (plan instanceof LogicalRelation read) {
      return plan.analyzed()
              && read.catalogTable().isEmpty()
              && read.relation() instanceof HadoopFsRelation files
          ? files.options()
          : null;
    }

    return null;
  }
}
