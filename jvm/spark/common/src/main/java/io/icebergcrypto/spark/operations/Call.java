package io.icebergcrypto.spark.operations;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.table.CatalogTables;
import io.icebergcrypto.spark.table.Progress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.SparkSession;

/**
 * A call of an operation.
 *
 * @param target what it is done to
 * @param given the arguments by their names
 * @param progress the listener to its progress
 */
record Call(
    SparkSession spark,
    Operation operation,
    Target target,
    Map<String, Object> given,
    Progress progress) {
  private static final int THREADS = 8;
  private static final int MOST_THREADS = 64;

  /**
   * Finds the table.
   *
   * @param in the catalog that a procedure is called in; {@link Target#NONE} for Python
   * @param given texts, booleans, longs, doubles, lists of texts and maps of texts; no nulls
   * @param progress who is told how far it is; null: nobody
   * @throws io.icebergcrypto.IcebergCryptoException when an argument is missing, or it names no
   *     table of the catalog
   */
  static Call of(
      SparkSession spark,
      Operation operation,
      Target in,
      Map<String, Object> given,
      Progress progress) {
    Progress told = progress == null ? new Progress(spark.sparkContext()) : progress;
    Call call = new Call(spark, operation, in, given, told);
    operation.parameters().stream()
        .filter(parameter -> parameter.defaultValue() == null)
        .forEach(parameter -> call.required(parameter.name()));
    String table = (String) given.get(Operation.TABLE);
    return table == null
        ? call
        : new Call(spark, operation, in.table(spark, table, operation), given, told);
  }

  private void required(String name) {
    if (!given.containsKey(name)) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: %s of %s is NULL", name, operation.name()), withValue());
    }
  }

  /**
   * The tables of the catalog or the namespace that {@code name} names.
   *
   * @throws InvalidConfigurationException when it does not exist, or is of another catalog than the
   *     procedure
   */
  CatalogTables tables() {
    CatalogTables tables = CatalogTables.named(spark, word("name"));
    target.checkIsOf(tables.catalogName(), text("name"), operation);
    return tables;
  }

  /** A table of the same catalog. */
  Target table(String name) {
    return target.table(spark, name, operation);
  }

  /** Does another operation, in the same catalog. */
  Answer run(Operation other, Map<String, Object> arguments) {
    return other.run(of(spark, other, target, arguments, progress));
  }

  /** What was given of the parameters that another operation has, too. */
  Map<String, Object> given(Operation other) {
    Map<String, Object> same = new HashMap<>(given);
    same.keySet().retainAll(other.parameters().stream().map(Parameter::name).toList());
    return same;
  }

  /**
   * The encrypting catalog that has the table, or in which the procedure is called.
   *
   * @throws InvalidConfigurationException when there is no such catalog
   */
  EncryptedCatalog catalog() {
    if (target.catalog() == null) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: no argument of %s names a catalog", operation.name()),
          String.format("CALL <catalog>.system.%s(...).", operation.name()));
    }

    return target.catalog();
  }

  /** The table. */
  TableIdentifier table() {
    return target.table();
  }

  /**
   * How many tables are to be in progress at once.
   *
   * @throws InvalidConfigurationException when that many cannot be
   */
  int threads() {
    long wanted = number("threads", THREADS);
    if (wanted < 1 || wanted > MOST_THREADS) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: threads is %d", wanted),
          String.format("Give a number from 1 to %d.", MOST_THREADS));
    }

    return (int) wanted;
  }

  /** A text; null: it was not given. */
  String text(String name) {
    return (String) value(name);
  }

  /**
   * A text that says something.
   *
   * @throws InvalidConfigurationException when it is blank
   */
  String word(String name) {
    String text = text(name);
    if (text.isBlank()) {
      throw new InvalidConfigurationException(
          String.format("nothing was done: %s of %s is empty", name, operation.name()),
          withValue());
    }

    return text;
  }

  private String withValue() {
    String catalog = target.plugin() == null ? ".." : SqlNames.quoted(target.plugin().name());
    return String.format("CALL %s.system.%s(...) with a value for it.", catalog, operation.name());
  }

  /** Whether a flag is set. */
  boolean flag(String name) {
    return Boolean.TRUE.equals(value(name));
  }

  /** A whole number. */
  long number(String name, long unlessGiven) {
    return value(name) instanceof Number number ? number.longValue() : unlessGiven;
  }

  /** A number. */
  double share(String name, double unlessGiven) {
    return value(name) instanceof Number number ? number.doubleValue() : unlessGiven;
  }

  /** Texts; none: they were not given. */
  @SuppressWarnings("unchecked")
  List<String> texts(String name) {
    Object value = value(name);
    return value == null ? List.of() : (List<String>) value;
  }

  /** Names and values; none: they were not given. */
  @SuppressWarnings("unchecked")
  Map<String, String> map(String name) {
    Object value = value(name);
    return value == null ? Map.of() : (Map<String, String>) value;
  }

  private Object value(String name) {
    operation.parameter(name); // a misspelt one would be one that was not given
    return given.get(name);
  }
}
