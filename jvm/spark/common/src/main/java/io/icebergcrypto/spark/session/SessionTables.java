package io.icebergcrypto.spark.session;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import scala.runtime.BoxedUnit;

/**
 * Checks tables that Spark creates without a call of {@code spark_catalog}.
 *
 * <p>Spark 4 finds this class as a service, without a setting; in Spark 3.5, {@code
 * ProcedureExtensions} calls it.
 */
public final class SessionTables implements SparkSessionExtensionsProvider {
  /** Spark makes one. */
  public SessionTables() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectResolutionRule(SessionTablesRule::new);
    return BoxedUnit.UNIT;
  }
}
