package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.call.Procedure;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.spark.PathIdentifier;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One of Iceberg's procedures that take a table, called with what this project knows of it. The
 * session's cache may have the table from before another client encrypted it, whose files would be
 * taken for orphans then: it is brought up to date first.
 */
class IcebergProcedure {
  private static final Logger LOG = LoggerFactory.getLogger(IcebergProcedure.class);

  private final Procedure procedure;
  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;

  /**
   * Wraps a procedure of Iceberg's.
   *
   * @param catalog the catalog that it is called in
   * @param encrypted the encrypting Iceberg catalog behind it
   */
  IcebergProcedure(Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    this.procedure = procedure;
    this.catalog = catalog;
    this.encrypted = encrypted;
  }

  /** Whether a procedure of Iceberg's takes a table. */
  static boolean takesTable(Procedure procedure) {
    return procedure.parameters().stream().anyMatch(given -> given.name().equals("table"));
  }

  /** Calls it, or does something else in its place; the parameter {@code table} is given. */
  Iterator<Scan> call(Procedure icebergs, InternalRow input) {
    return icebergs.call(input);
  }

  final Iterator<Scan> call(InternalRow input) {
    String table = textOrNull(input, "table");
    if (table == null) { // the procedure itself reports it
      return procedure.call(input);
    }

    CatalogAndIdentifier named;
    try {
      named = parsed(table, catalog);
    } catch (ParseException e) { // the procedure says so itself
      return call(procedure, input);
    }

    if (named.catalog() instanceof TableCatalog tables) {
      reload(tables, named.identifier());
    }

    Iterator<Scan> rows = call(procedure, input);
    readCachedRowsAgain(named.catalog().name(), named.identifier());
    return rows;
  }

  /**
   * Spark's own look for what CACHE TABLE has of a table's rows, at the end of a procedure, misses
   * it if another client has committed since.
   */
  private static void readCachedRowsAgain(String catalog, Identifier identifier) {
    SparkSession spark = SparkSession.active();
    if (identifier instanceof PathIdentifier || spark.sharedState().cacheManager().isEmpty()) {
      return;
    }

    Stream.concat(Stream.of(identifier), withoutSelector(identifier).stream())
        .map(one -> SqlNames.full(catalog, one.namespace(), one.name()))
        .forEach(
            name -> {
              try {
                CachedRows.readAgain(spark, name);
              } catch (Exception e) { // Spark's of Scala are checked, and not declared
                CancelledException.rethrow(e);
                LOG.debug("No rows of {} are read again", name, e); // as if there is no such table
              }
            });
  }

  /**
   * Brings what the session's cache has of a table up to date. The cached instance stays if it can:
   * by it, Spark before 4.1 reads again what is cached of rows that are made of the table's. A
   * table that was encrypted or made again since is loaded again.
   */
  static void reload(TableCatalog tables, Identifier identifier) {
    if (identifier instanceof PathIdentifier) { // no cache has it
      return;
    }

    try {
      if (tables.loadTable(identifier) instanceof SparkTable loaded && isKept(loaded.table())) {
        return;
      }
    } catch (NoSuchTableException e) {
      // the procedure says so itself, or makes it
    }

    tables.invalidateTable(identifier);
    withoutSelector(identifier).ifPresent(tables::invalidateTable);
  }

  private static boolean isKept(Table cached) {
    String keyId = EncryptionProperties.keyId(cached.properties());
    try {
      UUID uuid = cached.uuid();
      cached.refresh();
      return Objects.equals(uuid, cached.uuid())
          && Objects.equals(keyId, EncryptionProperties.keyId(cached.properties()));
    } catch (RuntimeException e) {
      return false; // another table has its name by now, or the next load fails as well
    }
  }

  /** The table itself, if a name is of a branch or snapshot of one, as in {@code db.t.branch_b}. */
  static Optional<Identifier> withoutSelector(Identifier identifier) {
    String[] names = identifier.namespace();
    int last = names.length - 1;
    return last < 0 || identifier instanceof PathIdentifier
        ? Optional.empty()
        : Optional.of(Identifier.of(Arrays.copyOf(names, last), names[last]));
  }

  final TableCatalog catalog() {
    return catalog;
  }

  final EncryptedCatalog encrypted() {
    return encrypted;
  }

  final List<Parameter> parameters() {
    return procedure.parameters();
  }

  final String textOrNull(InternalRow input, String parameter) {
    int index = indexOf(parameter);
    return input.isNullAt(index) ? null : input.getUTF8String(index).toString();
  }

  final int indexOf(String parameter) {
    int index = parameters().stream().map(Parameter::name).toList().indexOf(parameter);
    if (index < 0) {
      throw new IllegalStateException(procedure.name() + " has no parameter " + parameter);
    }

    return index;
  }

  static CatalogAndIdentifier parsed(String table, CatalogPlugin defaultCatalog)
      throws ParseException {
    return Spark3Util.catalogAndIdentifier(SparkSession.active(), table, defaultCatalog);
  }

  /** A table that a procedure names. */
  record Found(String catalog, Identifier identifier, Map<String, String> properties) {
    String fullName() {
      return SqlNames.full(catalog, identifier.namespace(), identifier.name());
    }

    boolean isEncrypted() {
      return properties.containsKey(TableProperties.ENCRYPTION_TABLE_KEY);
    }
  }

  /** Nothing when there is no such table: the procedure says so itself. */
  static Optional<Found> find(String table, CatalogPlugin defaultCatalog) {
    try {
      CatalogAndIdentifier found = parsed(table, defaultCatalog);
      if (!(found.catalog() instanceof TableCatalog tables)) {
        return Optional.empty();
      }

      return Optional.of(
          new Found(
              found.catalog().name(),
              found.identifier(),
              tables.loadTable(found.identifier()).properties()));
    } catch (NoSuchTableException | ParseException e) {
      return Optional.empty();
    }
  }
}
