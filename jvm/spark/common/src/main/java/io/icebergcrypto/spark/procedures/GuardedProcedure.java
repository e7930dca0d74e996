package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.lifecycle.copy.MovedPaths;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.call.Procedure;
import io.icebergcrypto.spark.copy.CopyRequest;
import io.icebergcrypto.spark.copy.TableCopy;
import io.icebergcrypto.spark.operations.Operations;
import io.icebergcrypto.spark.operations.Target;
import io.icebergcrypto.spark.table.TableNames;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An Iceberg procedure that would put plaintext files into an encrypted table, and so is refused
 * before it starts. The commit would be refused too, but by then files would have been written or a
 * table renamed. {@code rewrite_table_path} is replaced by {@link TableCopy}, and {@code
 * remove_orphan_files} spares what {@code encrypt_table} has copied.
 */
public final class GuardedProcedure implements Procedure {
  private static final Logger LOG = LoggerFactory.getLogger(GuardedProcedure.class);

  /** Iceberg's, if no age is given; and what it requires of one that is. */
  private static final int USUAL_AGE_DAYS = 3;

  private static final long DAY_MILLIS = 24L * 60 * 60 * 1000;

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
          STATISTICS_HINT);

  private static final String REWRITE_TABLE_PATH = "rewrite_table_path";
  private static final String REMOVE_ORPHAN_FILES = "remove_orphan_files";

  /** The columns that Iceberg's procedure gives, too. */
  private static final StructType REWRITTEN =
      new StructType()
          .add("latest_version", DataTypes.StringType)
          .add("file_list_location", DataTypes.StringType)
          .add("rewritten_manifest_file_paths_count", DataTypes.IntegerType)
          .add("rewritten_delete_file_paths_count", DataTypes.IntegerType);

  /** Procedures that make a table from another one's files. */
  private static final Set<String> INTO_NEW_TABLE = Set.of("migrate", "snapshot");

  /** Procedures that use the files of a table, and the parameter that names it. */
  private static final Map<String, String> SOURCES =
      Map.of("add_files", "source_table", "migrate", "table", "snapshot", "source_table");

  private final String name;
  private final Procedure procedure;
  private final TableCatalog catalog;
  private final EncryptedCatalog encrypted;

  private GuardedProcedure(
      String name, Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    this.name = name;
    this.procedure = procedure;
    this.catalog = catalog;
    this.encrypted = encrypted;
  }

  /**
   * Loads a procedure of this project.
   *
   * @param catalog the catalog that the procedure is called in
   * @param encrypted the encrypting Iceberg catalog behind it
   * @return null where this project has none of this name
   */
  public static Procedure own(Identifier ident, TableCatalog catalog, EncryptedCatalog encrypted) {
    boolean own = ident.namespace().length == 1 && isOwn(ident.namespace()[0], ident.name());
    return own
        ? new OperationProcedure(Operations.procedure(ident.name()), Target.in(catalog, encrypted))
        : null;
  }

  /** Whether this project has a procedure of this name in this namespace. */
  public static boolean isOwn(String namespace, String name) {
    return namespace.equals("system") && Operations.procedure(name) != null;
  }

  /** A procedure of Iceberg's, guarded where that is needed. */
  public static Procedure guard(
      Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    String lower = procedure.name().toLowerCase(Locale.ROOT);
    return ON_ENCRYPTED_TABLE.containsKey(lower)
            || INTO_NEW_TABLE.contains(lower)
            || lower.equals(REWRITE_TABLE_PATH)
            || lower.equals(REMOVE_ORPHAN_FILES)
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
  public StructType outputType() {
    return procedure.outputType();
  }

  @Override
  public Parameter[] parameters() {
    return procedure.parameters();
  }

  @Override
  public boolean isDeterministic() {
    return procedure.isDeterministic();
  }

  @Override
  public Iterator<Scan> call(InternalRow input) {
    if (!input.isNullAt(indexOf("table"))) { // otherwise the procedure itself reports it
      if (name.equals(REWRITE_TABLE_PATH)) {
        return rewriteTablePath(input);
      } else if (name.equals(REMOVE_ORPHAN_FILES)) {
        return procedure.call(withoutCopies(input));
      }

      refuseEncryptedSource(input);
      if (INTO_NEW_TABLE.contains(name)) {
        refuseEncryptedImport(input);
      } else {
        refuseOnEncryptedTable(input);
      }
    }

    return procedure.call(input);
  }

  /** Encrypted tables are copied by this project, others by Iceberg. */
  private Iterator<Scan> rewriteTablePath(InternalRow input) {
    String table = textOrNull(input, "table");
    if (TableNames.isPath(table)) { // nor does Iceberg's take them
      throw new NotSupportedException(
          String.format("nothing was written: %s takes no paths, and '%s' is one", name, table),
          "Register the table in a catalog, and give its name, as in db.t.");
    }

    Optional<Found> found = find(table, catalog).filter(Found::isEncrypted);
    if (found.isEmpty() || !found.get().catalog().equals(catalog.name())) {
      return procedure.call(input); // it takes no table of another catalog
    }

    int createFileList = indexOf("create_file_list");
    TableCopy.Result copy =
        TableCopy.run(
            SparkSession.active(),
            encrypted,
            Spark3Util.identifierToTableIdentifier(found.get().identifier()),
            new CopyRequest(
                new MovedPaths(given(input, "source_prefix"), given(input, "target_prefix")),
                textOrNull(input, "start_version"),
                textOrNull(input, "end_version"),
                textOrNull(input, "staging_location"),
                input.isNullAt(createFileList) || input.getBoolean(createFileList)));
    return OperationProcedure.scan(
        REWRITTEN,
        List.<Object[]>of(
            new Object[] {
              copy.latestVersion(), copy.fileList(), copy.manifests(), copy.deleteFiles()
            }));
  }

  /**
   * Of a plaintext table of which {@code encrypt_table} has copied some, no table has the copies
   * yet: only files that are older are removed.
   */
  private InternalRow withoutCopies(InternalRow input) {
    Long begun =
        find(textOrNull(input, "table"), catalog)
            .filter(found -> !found.isEncrypted() && found.catalog().equals(catalog.name()))
            .map(found -> begunMillis(found.identifier()))
            .orElse(null);
    int olderThan = indexOf("older_than");
    long keptMicros = begun == null ? Long.MAX_VALUE : (begun - DAY_MILLIS) * 1000;
    if (begun == null || !input.isNullAt(olderThan) && input.getLong(olderThan) < keptMicros) {
      return input;
    }

    long usual = System.currentTimeMillis() - USUAL_AGE_DAYS * DAY_MILLIS;
    Parameter[] parameters = parameters();
    Object[] values = new Object[parameters.length];
    for (int i = 0; i < values.length; i++) {
      values[i] = input.isNullAt(i) ? null : input.get(i, parameters[i].type());
    }

    values[olderThan] = Math.min(keptMicros, usual * 1000);
    LOG.info("{} only removes files from before {}: encrypt_table has begun", name, begun);
    return new GenericInternalRow(values);
  }

  private Long begunMillis(Identifier identifier) {
    try {
      TableIdentifier table = Spark3Util.identifierToTableIdentifier(identifier);
      return CopyLog.begunMillis(encrypted.context().unchecked(table));
    } catch (org.apache.iceberg.exceptions.NoSuchTableException e) {
      return null; // a table of another format, in the session's catalog
    }
  }

  private String textOrNull(InternalRow input, String parameter) {
    int index = indexOf(parameter);
    return input.isNullAt(index) ? null : input.getUTF8String(index).toString();
  }

  /** NULL is as nothing, which is refused. */
  private String given(InternalRow input, String parameter) {
    String text = textOrNull(input, parameter);
    return text == null ? "" : text;
  }

  private int indexOf(String parameter) {
    Parameter[] parameters = parameters();
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
    int properties = indexOf("properties");
    String table = input.getUTF8String(indexOf("table")).toString();
    if (encrypted
        .context()
        .encryptsNewTable(
            namespace(table),
            input.isNullAt(properties)
                ? Map.of()
                : OperationProcedure.texts(input.getMap(properties)))) {
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
  private record Found(String catalog, Identifier identifier, Map<String, String> properties) {
    String fullName() {
      return SqlNames.full(catalog, identifier.namespace(), identifier.name());
    }

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
              found.catalog().name(),
              found.identifier(),
              tables.loadTable(found.identifier()).properties()));
    } catch (NoSuchTableException | ParseException e) {
      return Optional.empty();
    }
  }

  private void refuseOnEncryptedTable(InternalRow input) {
    boolean allowed =
        name.startsWith("compute_")
            && encrypted.context().settings().statistics() != StatisticsPolicy.REFUSE;
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
