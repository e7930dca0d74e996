package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.operations.Operation;
import io.icebergcrypto.spark.operations.Operations;
import io.icebergcrypto.spark.operations.Target;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Operations as procedures of SQL: their arguments and rows as Spark has them. */
final class OperationProcedure {
  private OperationProcedure() {}

  /**
   * An operation as a procedure.
   *
   * @param in the catalog that it is called in
   */
  static Procedure of(Operation operation, Target in) {
    return new Procedure(
        operation.name(),
        operation.description(),
        operation.parameters(),
        operation.columns(),
        false,
        null,
        input -> call(operation, in, input));
  }

  private static Iterator<Scan> call(Operation operation, Target in, InternalRow input) {
    Map<String, Object> given = new HashMap<>();
    List<Parameter> parameters = operation.parameters();
    for (int i = 0; i < parameters.size(); i++) {
      if (!input.isNullAt(i)) {
        given.put(parameters.get(i).name(), fromSpark(input.get(i, parameters.get(i).type())));
      }
    }

    return scan(operation.columns(), Operations.rows(SparkSession.active(), operation, in, given));
  }

  private static Object fromSpark(Object value) {
    if (value instanceof ArrayData array) {
      return Stream.of(array.toObjectArray(DataTypes.StringType)).map(String::valueOf).toList();
    }

    return value instanceof MapData map
        ? texts(map)
        : value instanceof UTF8String text ? text.toString() : value;
  }

  /** Names and values. */
  static Map<String, String> texts(MapData map) {
    Map<String, String> values = new HashMap<>();
    map.foreach(
        DataTypes.StringType,
        DataTypes.StringType,
        (key, value) -> {
          values.put(String.valueOf(key), String.valueOf(value));
          return null;
        });
    return values;
  }

  /** Rows as Spark takes them. */
  static Iterator<Scan> scan(StructType columns, List<Object[]> rows) {
    InternalRow[] all =
        rows.stream()
            .map(row -> Stream.of(row).map(OperationProcedure::toSpark).toArray())
            .map(GenericInternalRow::new)
            .toArray(InternalRow[]::new);
    return List.<Scan>of(new Rows(columns, all)).iterator();
  }

  private static Object toSpark(Object value) {
    return value instanceof Instant time
        ? (Object) ChronoUnit.MICROS.between(Instant.EPOCH, time)
        : value instanceof String text ? UTF8String.fromString(text) : value;
  }

  private record Rows(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
