package io.icebergcrypto.spark.values;

import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.spark.call.ScalaLists;
import java.util.List;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.SparkSessionExtensionsProvider;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.unsafe.types.UTF8String;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Checks value functions in a statement when Spark has analyzed it: the names of their keys, as
 * Spark tells only the types of arguments while it binds a function, and that they are not in a
 * stream, which is analyzed once and would use the keys of that time. A name that is not a literal
 * is looked up with the first row.
 *
 * <p>Spark 4 finds this class as a service, without a setting.
 */
public final class ValueKeyNames implements SparkSessionExtensionsProvider {
  private static final int KEY = 1; // the place of its name among the arguments

  /** Spark makes one. */
  public ValueKeyNames() {}

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectCheckRule(session -> new Check());
    return BoxedUnit.UNIT;
  }

  private static final class Check extends AbstractFunction1<LogicalPlan, BoxedUnit> {
    @Override
    public BoxedUnit apply(LogicalPlan plan) {
      if (plan.containsPattern(TreePattern.INVOKE())) {
        List<LogicalPlan> subqueries = ScalaLists.toJava(plan.subqueriesAll());
        // A node knows of its own children only: the static side of a join is in the stream, too.
        boolean isStreaming =
            plan.isStreaming() || subqueries.stream().anyMatch(LogicalPlan::isStreaming);
        check(plan, isStreaming);
        subqueries.forEach(subquery -> check(subquery, isStreaming));
      }

      return BoxedUnit.UNIT;
    }

    private static void check(LogicalPlan plan, boolean isStreaming) {
      plan.foreach(
          node -> {
            ScalaLists.toJava(node.expressions())
                .forEach(expression -> checkAll(expression, isStreaming));
            return BoxedUnit.UNIT;
          });
    }

    private static void checkAll(Expression expression, boolean isStreaming) {
      expression.foreach(
          part -> {
            if (part instanceof Invoke invoke
                && invoke.targetObject() instanceof Literal target
                && target.value() instanceof ValueFunction.Bound function) {
              if (isStreaming) {
                throw keptKeys(function);
              }

              checkName(function, ScalaLists.toJava(invoke.arguments()));
            }

            return BoxedUnit.UNIT;
          });
    }

    private static NotSupportedException keptKeys(ValueFunction.Bound function) {
      return new NotSupportedException(
          String.format(
              "%s in a stream would use the value keys that there were when it began, whatever is"
                  + " rotated or dropped later",
              function.name()),
          "Call it in foreachBatch, on the rows of each batch: then each batch uses the keys of its"
              + " own time. Nothing was read or written.");
    }

    /**
     * Checks the name of one function's key.
     *
     * @throws KeyNotFoundException when its catalog has no such value key
     */
    private static void checkName(ValueFunction.Bound function, List<Expression> arguments) {
      Expression name = arguments.get(KEY);
      while (name instanceof Cast cast) { // of a NULL without a type
        name = cast.child();
      }

      if (name instanceof Literal literal && literal.value() == null) {
        function.require(null);
      } else if (name instanceof Literal literal && literal.value() instanceof UTF8String text) {
        function.require(text.toString());
      }
    }
  }
}
