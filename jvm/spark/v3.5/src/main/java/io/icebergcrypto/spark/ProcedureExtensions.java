package io.icebergcrypto.spark;

import io.icebergcrypto.spark.session.SessionTables;
import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Has Spark 3.5 understand {@code CALL} of this project's procedures. It goes into {@code
 * spark.sql.extensions}, beside Iceberg's extension, which parses {@code CALL} of its own
 * procedures alone. It also adds the rule of {@link SessionTables}. Spark 4 needs no such class.
 */
public final class ProcedureExtensions
    extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    Artifact.check(); // the jar for another Scala could not parse anything
    new SessionTables().apply(extensions);
    extensions.injectParser((session, parser) -> new CallParser(parser));
    return BoxedUnit.UNIT;
  }
}
