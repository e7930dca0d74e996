package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.StatisticsPolicy;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * An Iceberg procedure that would put plaintext files into an encrypted table, and so is refused
 * before it starts. The commit would be refused too, but by then files would have been written or a
 * table renamed.
 */
public final class GuardedProcedure implements UnboundProcedure, BoundProcedure {
  private static final String STATISTICS_HINT =
      "Set the catalog property encryption.statistics=encrypt: the statistics of %s are then"
          + " encrypted, and clients without this catalog plan without them.";

  /** Procedures that write into a table, and what to do instead on an encrypted one. */
  private static final Map<String, String> ON_ENCRYPTED_TABLE =
      Map.of(
          "add_files",
          "Copy the rows instead, which encrypts them: INSERT INTO %s SELECT * FROM <the source>.",
          "compute_table_stats",
          STATISTICS_HINT,
          "compute_partition_stats",
          STATISTICS_HINT,
          "rewrite_table_path",
          "For a copy to recover from, mirror the table's folder, restore it under the same paths,"
              + " and call register_table. Or copy the rows: CREATE TABLE <new> USING iceberg"
              + " TBLPROPERTIES ('encryption.key-id'='<master key id>') AS SELECT * FROM %s.");

  /** This project's own procedures. */
  private static final Map<String, BiFunction<TableCatalog, EncryptedCatalog, TableProcedure>>
      OURS =
          Map.ofEntries(
              procedure(AuthenticateMetadata.NAME, AuthenticateMetadata::new),
              procedure(DecryptTable.NAME, DecryptTable::new),
              procedure(EncryptTable.NAME, EncryptTable::new),
              procedure(PurgePlaintext.NAME, PurgePlaintext::new),
              procedure(PurgeWithoutKey.NAME, PurgeWithoutKey::new),
              procedure(ListEncryptionKeys.NAME, ListEncryptionKeys::new),
              procedure(PruneEncryptionKeys.NAME, PruneEncryptionKeys::new),
              procedure(ReencryptTable.NAME, ReencryptTable::new),
              procedure(RepairTable.NAME, RepairTable::new),
              procedure(RotateKek.NAME, RotateKek::new),
              procedure(RotateMasterKey.NAME, RotateMasterKey::new),
              procedure(VerifyEncryption.NAME, VerifyEncryption::new));

  /** Procedures that make a table from another one's files. */
  private static final Set<String> INTO_NEW_TABLE = Set.of("migrate", "snapshot");

  /** Procedures that use the files of a table, and the parameter that names it. */
  private static final Map<String, String> SOURCES =
      Map.of("add_files", "source_table", "migrate", "table", "snapshot", "source_table");

  private static Map.Entry<String, BiFunction<TableCatalog, EncryptedCatalog, TableProcedure>>
      procedure(
          String name, BiFunction<TableCatalog, EncryptedCatalog, TableProcedure> constructor) {
    return Map.entry(name, constructor);
  }

  private final String name;
  private final UnboundProcedure procedure;
  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;

  private GuardedProcedure(
      String name, UnboundProcedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    this.name = name;
    this.procedure = procedure;
    this.catalog = catalog;
    this.encrypted = encrypted;
  }

  /**
   * Loads a procedure: one of this project, or one of Iceberg's, guarded where that is needed.
   *
   * @param iceberg loads Iceberg's
   * @param catalog the catalog that the procedure is called in
   * @param encrypted the encrypting Iceberg catalog behind it
   */
  public static UnboundProcedure load(
      Identifier ident,
      Function<Identifier, UnboundProcedure> iceberg,
      TableCatalog catalog,
      EncryptedCatalog encrypted) {
    String lower = ident.name().toLowerCase(Locale.ROOT);
    boolean system = ident.namespace().length == 1 && ident.namespace()[0].equals("system");
    if (system && OURS.containsKey(lower)) {
      return OURS.get(lower).apply(catalog, encrypted);
    }

    UnboundProcedure procedure = iceberg.apply(ident);
    return ON_ENCRYPTED_TABLE.containsKey(lower) || INTO_NEW_TABLE.contains(lower)
        ? new GuardedProcedure(lower, procedure, catalog, encrypted)
        : procedure;
  }

  @Override
  public String name() {
    return procedure.name();
  }

  @Override
  public String description() {
    return procedure.description();
  }

  @Override
  public BoundProcedure bind(StructType inputType) {
    procedure.bind(inputType);
    return this;
  }

  @Override
  public ProcedureParameter[] parameters() {
    return bound().parameters();
  }

  @Override
  public boolean isDeterministic() {
    return bound().isDeterministic();
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    if (!input.isNullAt(indexOf("table"))) { // otherwise the procedure itself reports it
      refuseEncryptedSource(input);
      if (INTO_NEW_TABLE.contains(name)) {
        refuseEncryptedImport(input);
      } else {
        refuseOnEncryptedTable(input);
      }
    }

    return bound().call(input);
  }

  private BoundProcedure bound() {
    return procedure.bind(new StructType());
  }

  private int indexOf(String parameter) {
    ProcedureParameter[] parameters = parameters();
    for (int i = 0; i < parameters.length; i++) {
      if (parameters[i].name().equals(parameter)) {
        return i;
      }
    }

    throw new IllegalStateException(name + " has no parameter " + parameter);
  }

  /** Another table has no keys for the files of an encrypted one, nor is it to share them. */
  private void refuseEncryptedSource(InternalRow input) {
    String parameter = SOURCES.get(name);
    if (parameter == null || input.isNullAt(indexOf(parameter))) {
      return;
    }

    String source = input.getUTF8String(indexOf(parameter)).toString();
    CatalogPlugin current = SparkSession.active().sessionState().catalogManager().currentCatalog();
    find(source, parameter.equals("table") ? catalog : current)
        .filter(Found::isEncrypted)
        .ifPresent(
            found -> {
              throw new NotSupportedException(
                      name
                          + " uses a table's files as they are, and these are encrypted with keys"
                          + " that only this table's metadata has",
                      "Copy the rows instead: CREATE TABLE <new> USING iceberg TBLPROPERTIES"
                          + " ('encryption.key-id'='<master key id>') AS SELECT * FROM "
                          + found.fullName()
                          + ".")
                  .inTable(found.fullName());
            });
  }

  private void refuseEncryptedImport(InternalRow input) {
    Map<String, String> properties = TableProcedure.map(input, indexOf("properties"));
    String table = input.getUTF8String(indexOf("table")).toString();
    if (encrypted.encryptsNewTable(namespace(table), properties)) {
      throw new NotSupportedException(
              name + " keeps a table's files as they are: plaintext, in an encrypted table",
              "Copy the rows instead, which encrypts them: CREATE TABLE <new> USING iceberg"
                  + " TBLPROPERTIES ('encryption.key-id'='<master key id>') AS SELECT * FROM <the"
                  + " source>.")
          .inTable(table);
    }
  }

  private Namespace namespace(String table) {
    try {
      return Namespace.of(parsed(table, catalog).identifier().namespace());
    } catch (ParseException e) {
      return Namespace.empty(); // the procedure says so itself
    }
  }

  private static CatalogAndIdentifier parsed(String table, CatalogPlugin defaultCatalog)
      throws ParseException {
    return Spark3Util.catalogAndIdentifier(SparkSession.active(), table, defaultCatalog);
  }

  /** A table that a procedure names. */
  private record Found(String fullName, Map<String, String> properties) {
    boolean isEncrypted() {
      return properties.containsKey(TableProperties.ENCRYPTION_TABLE_KEY);
    }
  }

  /** Nothing when there is no such table: the procedure says so itself. */
  private static Optional<Found> find(String table, CatalogPlugin defaultCatalog) {
    try {
      CatalogAndIdentifier found = parsed(table, defaultCatalog);
      if (!(found.catalog() instanceof TableCatalog tables)) {
        return Optional.empty();
      }

      return Optional.of(
          new Found(
              found.catalog().name() + "." + found.identifier(),
              tables.loadTable(found.identifier()).properties()));
    } catch (NoSuchTableException | ParseException e) {
      return Optional.empty();
    }
  }

  private void refuseOnEncryptedTable(InternalRow input) {
    boolean allowed =
        name.startsWith("compute_") && encrypted.statistics() != StatisticsPolicy.REFUSE;
    find(input.getUTF8String(indexOf("table")).toString(), catalog)
        .filter(found -> found.isEncrypted() && !allowed)
        .ifPresent(
            found -> {
              throw new NotSupportedException(
                      name + " would write plaintext files of an encrypted table",
                      String.format(ON_ENCRYPTED_TABLE.get(name), found.fullName()))
                  .inTable(found.fullName());
            });
  }
}
