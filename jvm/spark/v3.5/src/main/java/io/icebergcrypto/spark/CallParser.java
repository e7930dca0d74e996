package io.icebergcrypto.spark;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.spark.call.ScalaLists;
import io.icebergcrypto.spark.procedures.Procedures;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.iceberg.spark.ExtendedParser;
import org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.CallArgument;
import org.apache.spark.sql.catalyst.plans.logical.CallStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.NamedArgument;
import org.apache.spark.sql.catalyst.plans.logical.PositionalArgument;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Parses {@code CALL} of this project's procedures, and leaves all else to the parser below, which
 * may be Iceberg's or Spark's. What follows {@code CALL} is written as the call of a function is,
 * and is parsed as one; Iceberg's extension then looks for the procedure and runs it.
 */
final class CallParser extends IdentifierParser {
  private static final String EXTENSIONS = "spark.sql.extensions";
  private static final Pattern CALL =
      Pattern.compile(
          "(?:\\s|--[^\\n]*\\n|/\\*.*?\\*/)*+CALL\\b((.*?)\\(.*?)[;\\s]*+",
          Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

  CallParser(ParserInterface delegate) {
    super(delegate);
  }

  @Override
  public LogicalPlan parsePlan(String text) throws ParseException {
    Matcher call = CALL.matcher(text);
    if (!call.matches() || !namesOurs(call.group(2))) {
      return delegate.parsePlan(text);
    }

    requireIceberg();
    return delegate.parseExpression(call.group(1)) instanceof UnresolvedFunction function
        ? new CallStatement(
            function.nameParts(),
            ScalaLists.of(
                ScalaLists.toJava(function.arguments()).stream()
                    .map(CallParser::argument)
                    .toList()))
        : delegate.parsePlan(text); // which says what is wrong
  }

  private boolean namesOurs(String name) {
    try {
      List<String> parts = ScalaLists.toJava(delegate.parseMultipartIdentifier(name));
      int last = parts.size() - 1;
      return last > 0 && Procedures.isOwn(parts.get(last - 1), parts.get(last));
    } catch (ParseException e) {
      return false;
    }
  }

  /** Nothing else would resolve the statement, and Spark's error would not say so. */
  private static void requireIceberg() {
    String extension = IcebergSparkSessionExtensions.class.getName();
    if (!SparkSession.active().conf().get(EXTENSIONS, "").contains(extension)) {
      throw new InvalidConfigurationException(
          "CALL of a procedure needs Iceberg's SQL extension in Spark 3.5",
          String.format(
              "Start Spark with %s=%s,%s.",
              EXTENSIONS, extension, ProcedureExtensions.class.getName()));
    }
  }

  private static CallArgument argument(Expression expression) {
    return expression instanceof NamedArgumentExpression named
        ? new NamedArgument(named.key(), named.value())
        : new PositionalArgument(expression);
  }

  @Override
  public List<RawOrderField> parseSortOrder(String text) throws AnalysisException {
    if (delegate instanceof ExtendedParser iceberg) {
      return iceberg.parseSortOrder(text);
    }

    throw new UnsupportedOperationException(
        "Iceberg's parser is not below this one, and parses sort orders itself");
  }

  @Override
  public Expression parseExpression(String text) throws ParseException {
    return delegate.parseExpression(text);
  }

  @Override
  public TableIdentifier parseTableIdentifier(String text) throws ParseException {
    return delegate.parseTableIdentifier(text);
  }

  @Override
  public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
    return delegate.parseFunctionIdentifier(text);
  }

  @Override
  public StructType parseTableSchema(String text) throws ParseException {
    return delegate.parseTableSchema(text);
  }

  @Override
  public DataType parseDataType(String text) throws ParseException {
    return delegate.parseDataType(text);
  }

  @Override
  public LogicalPlan parseQuery(String text) throws ParseException {
    return delegate.parseQuery(text);
  }
}
