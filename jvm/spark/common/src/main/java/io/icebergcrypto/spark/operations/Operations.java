package io.icebergcrypto.spark.operations;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.table.Progress;
import io.icebergcrypto.spark.verify.VerifyOptions;
import java.math.BigDecimal;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;

/** All operations, and how they are called. */
public final class Operations {
  /** What Python calls over Spark Connect, where only SQL reaches Java. */
  private static final Operation BY_NAME =
      Operation.procedure(
          "operation",
          "Does what one of the other procedures does, or a function of Python, and answers in"
              + " JSON",
          "name STRING NOT NULL, arguments STRING NOT NULL",
          "answer STRING NOT NULL",
          call ->
              Answer.row(
                  Map.of(
                      "answer",
                      json(
                          call.spark(),
                          call.target(),
                          call.text("name"),
                          call.text("arguments"),
                          call.progress()))));

  private static final Map<String, Operation> ALL =
      Stream.of(
              List.of(BY_NAME),
              KeyOperations.ALL,
              TableOperations.ALL,
              ValueKeyOperations.ALL,
              VerifyOperations.ALL,
              FileOperations.ALL)
          .flatMap(List::stream)
          .collect(Collectors.toMap(Operation::name, Function.identity()));

  private Operations() {}

  /** The procedure of a name, ignoring case; null if it does not exist. */
  public static Operation procedure(String name) {
    Operation found = ALL.get(name.toLowerCase(Locale.ROOT));
    return found == null || !found.isProcedure() ? null : found;
  }

  /**
   * Does one, as SQL asks for it.
   *
   * @param in the catalog that the procedure is called in
   * @param given the arguments, but those that are NULL: see {@link Call}
   * @return the values of each row, in the order of {@link Operation#columns}
   */
  public static List<Object[]> rows(
      SparkSession spark, Operation operation, Target in, Map<String, Object> given) {
    return operation.values(operation.run(Call.of(spark, operation, in, given, null)).rows());
  }

  /**
   * Does one, as Python asks for it.
   *
   * @param in the catalog that the procedure is called in; {@link Target#NONE} on the driver
   * @param arguments a JSON object; what is null in it is not given
   * @param progress who is told how far it is; null: nobody
   * @return the answer, as JSON
   * @throws InvalidConfigurationException when there is no such operation or parameter
   */
  public static String json(
      SparkSession spark, Target in, String name, String arguments, Progress progress) {
    Operation operation = ALL.get(name.toLowerCase(Locale.ROOT));
    if (operation == null) {
      throw new InvalidConfigurationException(
          String.format("There is no operation '%s'", name),
          "Check its name; or the Python package is of another version than the jar: install the"
              + " same.");
    }

    if (operation.isOnDriver() && in != Target.NONE) {
      throw new NotSupportedException(
          String.format("nothing was done: %s cannot be called from SQL", operation.name()),
          "Call Python's function where the driver is.");
    }

    return Json.of(operation.run(call(spark, operation, in, arguments, progress)).value());
  }

  /** The options of a table's verification, of the JSON that verify_encryption takes. */
  public static VerifyOptions verifyOptions(SparkSession spark, String table, String arguments) {
    return VerifyOperations.options(
        call(spark, VerifyOperations.VERIFY, Target.NONE, arguments, null),
        () -> Target.ofTable(spark, table).catalog());
  }

  private static Call call(
      SparkSession spark, Operation operation, Target in, String arguments, Progress progress) {
    Map<String, Object> given = new HashMap<>();
    parsed(operation, arguments)
        .forEach(
            (name, value) -> {
              Parameter parameter = operation.parameter(name);
              if (!value.isJsonNull()) {
                given.put(name, value(operation, parameter, value));
              }
            });
    return Call.of(spark, operation, in, given, progress);
  }

  private static Map<String, JsonElement> parsed(Operation operation, String arguments) {
    try {
      return Json.object(arguments).asMap();
    } catch (JsonParseException | IllegalStateException e) {
      throw wrong(operation, "arguments", "a JSON object");
    }
  }

  private static Object value(Operation operation, Parameter parameter, JsonElement json) {
    DataType type = parameter.type();
    if (json instanceof JsonPrimitive one) {
      if (type.equals(DataTypes.StringType) && one.isString()) {
        return one.getAsString();
      } else if (type.equals(DataTypes.BooleanType) && one.isBoolean()) {
        return one.getAsBoolean();
      } else if (isWhole(one) && type.equals(DataTypes.LongType)) {
        return one.getAsLong();
      } else if (one.isNumber() && type.equals(DataTypes.DoubleType)) {
        return one.getAsDouble();
      }
    } else if (json instanceof JsonArray array && type instanceof ArrayType && areTexts(array)) {
      return array.asList().stream().map(JsonElement::getAsString).toList();
    } else if (json instanceof JsonObject map
        && type instanceof MapType
        && areTexts(map.asMap().values())) {
      return Json.texts(json.toString());
    }

    throw wrong(operation, parameter.name(), type.sql());
  }

  private static boolean isWhole(JsonPrimitive json) {
    if (!json.isNumber()) {
      return false;
    }

    BigDecimal number = json.getAsBigDecimal();
    return number.compareTo(BigDecimal.valueOf(number.longValue())) == 0;
  }

  private static boolean areTexts(Iterable<JsonElement> all) {
    for (JsonElement one : all) {
      if (!one.isJsonPrimitive()) {
        return false;
      }
    }

    return true;
  }

  private static InvalidConfigurationException wrong(
      Operation operation, String argument, String what) {
    return new InvalidConfigurationException(
        String.format("nothing was done: %s of %s is not %s", argument, operation.name(), what),
        "Python's functions give what an operation takes; its parameters are those of the"
            + " procedure.");
  }
}
