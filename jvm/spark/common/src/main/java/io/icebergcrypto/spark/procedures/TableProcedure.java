package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.verify.scan.TableNames;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A procedure of this project: its first argument is a table of its catalog, its result one row or
 * more.
 */
abstract class TableProcedure implements Procedure {
  private final String name;
  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;
  private final StructType output;

  TableProcedure(String name, TableCatalog catalog, EncryptedCatalog encrypted, StructType output) {
    this.name = name;
    this.catalog = catalog;
    this.encrypted = encrypted;
    this.output = output;
  }

  /**
   * Runs the procedure.
   *
   * @param in the encrypting catalog that has the table: that of tables by their paths, too
   * @param input the arguments, of which the first names the table
   * @return the rows, each its values
   */
  abstract List<Object[]> run(EncryptedCatalog in, TableIdentifier table, InternalRow input);

  /** Whether it takes a table by its path. */
  boolean takesPaths() {
    return false;
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public StructType outputType() {
    return output;
  }

  @Override
  public Parameter[] parameters() {
    return new Parameter[] {text("table")};
  }

  /** A parameter that must be given. */
  static Parameter text(String name) {
    return Parameter.required(name, DataTypes.StringType);
  }

  /** A parameter that is NULL when it is not given. */
  static Parameter optionalText(String name) {
    return Parameter.optional(name, DataTypes.StringType);
  }

  /** A parameter that is false when it is not given. */
  static Parameter flag(String name) {
    return new Parameter(name, DataTypes.BooleanType, "false");
  }

  /** A parameter of names and values that is NULL when it is not given. */
  static Parameter optionalMap(String name) {
    DataType type = DataTypes.createMapType(DataTypes.StringType, DataTypes.StringType);
    return Parameter.optional(name, type);
  }

  /** A parameter of several texts that is NULL when it is not given. */
  static Parameter optionalTexts(String name) {
    return Parameter.optional(name, DataTypes.createArrayType(DataTypes.StringType));
  }

  /** Several texts; NULL is none. */
  static List<String> texts(InternalRow input, int index) {
    return input.isNullAt(index)
        ? List.of()
        : Stream.of(input.getArray(index).toObjectArray(DataTypes.StringType))
            .map(String::valueOf)
            .toList();
  }

  /** Names and values; NULL is none. */
  static Map<String, String> map(InternalRow input, int index) {
    Map<String, String> values = new HashMap<>();
    if (!input.isNullAt(index)) {
      input
          .getMap(index)
          .foreach(
              DataTypes.StringType,
              DataTypes.StringType,
              (key, value) -> {
                values.put(String.valueOf(key), String.valueOf(value));
                return null;
              });
    }

    return values;
  }

  /** Whether a flag was given; NULL is false. */
  static boolean isSet(InternalRow input, int index) {
    return !input.isNullAt(index) && input.getBoolean(index);
  }

  /**
   * The text of a parameter.
   *
   * @throws InvalidConfigurationException when it is NULL
   */
  final String given(InternalRow input, int index) {
    if (input.isNullAt(index)) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: %s of %s is NULL", parameters()[index].name(), name),
          String.format("%s with a value for it.", example(catalog)));
    }

    return input.getUTF8String(index).toString();
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    String table = given(input, 0);
    if (TableNames.isPath(table)) {
      return scan(run(byPath(table), TableIdentifier.of(table), input));
    }

    CatalogAndIdentifier found = TableNames.find(SparkSession.active(), table, catalog);

    if (!found.catalog().name().equals(catalog.name())) {
      throw new InvalidConfigurationException(
          String.format(
              "nothing was done: '%s' is a table of catalog %s, and this is the procedure of %s",
              table, found.catalog().name(), catalog.name()),
          String.format("%s instead.", example(found.catalog())));
    }

    TableIdentifier identifier = Spark3Util.identifierToTableIdentifier(found.identifier());
    if (!identifier.hasNamespace() && TableNames.isPath(identifier.name())) {
      return scan(run(byPath(identifier.name()), identifier, input));
    }

    try {
      List<Object[]> rows = run(encrypted, identifier, input);
      catalog.invalidateTable(found.identifier());
      return scan(rows);
    } catch (NoSuchTableException e) {
      throw new InvalidConfigurationException(
          String.format(
              "nothing was done: Table %s does not exist", encrypted.fullName(identifier)),
          "Give the name of a table, as in db.t. A view has no files.",
          e);
    }
  }

  private String example(CatalogPlugin of) {
    return String.format("CALL %s.system.%s(...)", SqlNames.quoted(of.name()), name);
  }

  private EncryptedCatalog byPath(String path) {
    if (takesPaths()) {
      return encrypted.byPath();
    }

    throw new NotSupportedException(
        String.format("nothing was done: %s takes no paths, and '%s' is one", name, path),
        "Give the table's name, as in db.t.");
  }

  /** The values of a row, in the order of its columns. */
  static Object[] row(Map<String, Object> values) {
    return values.values().stream()
        .map(value -> value instanceof String text ? UTF8String.fromString(text) : value)
        .toArray();
  }

  /** The rows as Spark takes them. */
  final Iterator<Scan> scan(List<Object[]> rows) {
    return scan(output, rows);
  }

  /** The same for another procedure. */
  static Iterator<Scan> scan(StructType output, List<Object[]> rows) {
    InternalRow[] all = rows.stream().map(GenericInternalRow::new).toArray(InternalRow[]::new);
    return List.<Scan>of(new Output(output, all)).iterator();
  }

  private record Output(StructType readSchema, InternalRow[] rows) implements LocalScan {}
}
