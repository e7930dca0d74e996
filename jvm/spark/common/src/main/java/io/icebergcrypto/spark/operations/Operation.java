package io.icebergcrypto.spark.operations;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.table.TableNotFoundException;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * Something that can be done: its name, its parameters and what it gives are declared here alone.
 * SQL calls it as a procedure, and Python by its name. A parameter {@code table} names the table
 * that it is done to.
 *
 * @param name what SQL and Python call it
 * @param description what it does, in a sentence; null of what is not a procedure
 * @param parameters in the order of SQL
 * @param columns of its rows; null of what is not a procedure
 * @param takesPaths whether it takes tables by their paths, too
 * @param isOnDriver whether SQL does not reach it
 */
public record Operation(
    String name,
    String description,
    List<Parameter> parameters,
    StructType columns,
    boolean takesPaths,
    boolean isOnDriver,
    Work work) {
  /** The parameter that names a table. */
  static final String TABLE = "table";

  private static final String REQUIRED = " NOT NULL";

  /** What it does. */
  @FunctionalInterface
  interface Work {
    Answer run(Call call);
  }

  /**
   * One that is a procedure of SQL, too.
   *
   * @param parameters as {@code "table STRING NOT NULL, dry_run BOOLEAN"}: what is not NOT NULL
   *     need not be given, and is NULL then; a BOOLEAN is false
   * @param columns of its rows, written alike
   */
  static Operation procedure(
      String name, String description, String parameters, String columns, Work work) {
    StructType output = new StructType();
    for (String column : columns.split(", ")) {
      output = output.add(nameOf(column), typeOf(column), !column.endsWith(REQUIRED));
    }

    return new Operation(name, description, parametersOf(parameters), output, false, false, work);
  }

  /** One that is for functions of Python alone. */
  static Operation call(String name, String parameters, Work work) {
    return new Operation(name, null, parametersOf(parameters), null, false, false, work);
  }

  /** The same, which takes tables by their paths, too. */
  Operation withPaths() {
    return new Operation(name, description, parameters, columns, true, isOnDriver, work);
  }

  /** The same, for callers on the driver: SQL does not reach it. */
  Operation onDriver() {
    return new Operation(name, description, parameters, columns, takesPaths, true, work);
  }

  private static List<Parameter> parametersOf(String ddl) {
    return ddl.isEmpty()
        ? List.of()
        : Arrays.stream(ddl.split(", ")).map(Operation::parameterOf).toList();
  }

  private static Parameter parameterOf(String ddl) {
    DataType type = typeOf(ddl);
    String unless = type.equals(DataTypes.BooleanType) ? "false" : "NULL";
    return new Parameter(nameOf(ddl), type, ddl.endsWith(REQUIRED) ? null : unless);
  }

  private static String nameOf(String ddl) {
    return ddl.substring(0, ddl.indexOf(' '));
  }

  private static DataType typeOf(String ddl) {
    return DataType.fromDDL(ddl.substring(ddl.indexOf(' ') + 1).replace(REQUIRED, ""));
  }

  /** Whether it is a procedure of SQL. */
  public boolean isProcedure() {
    return columns != null;
  }

  /**
   * Does it; Spark loads the table again then.
   *
   * @throws TableNotFoundException when there is no such table
   * @throws InvalidConfigurationException when a value is missing
   */
  Answer run(Call call) {
    try {
      Answer answer = work.run(call);
      call.target().invalidate();
      return answer;
    } catch (NoSuchTableException e) {
      if (call.target().table() == null) {
        throw e;
      }

      throw new TableNotFoundException(
          String.format("nothing was done: Table %s does not exist", call.target().fullName()),
          "Give the name of a table, as in db.t. A view has no files.",
          e);
    }
  }

  /** The parameter of a name. */
  Parameter parameter(String parameter) {
    return parameters.stream()
        .filter(one -> one.name().equals(parameter))
        .findFirst()
        .orElseThrow(
            () ->
                new InvalidConfigurationException(
                    String.format("nothing was done: %s has no parameter %s", name, parameter),
                    String.format(
                        "It has %s.", parameters.stream().map(Parameter::name).toList())));
  }

  /** The rows, as SQL takes them. */
  List<Object[]> values(List<Map<String, Object>> rows) {
    return rows.stream()
        .map(row -> Arrays.stream(columns.names()).map(row::get).toArray())
        .toList();
  }
}
