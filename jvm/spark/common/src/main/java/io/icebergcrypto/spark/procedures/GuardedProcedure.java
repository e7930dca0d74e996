package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EngineCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.spark.call.Procedure;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.spark.Spark3Util.CatalogAndIdentifier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;

/**
 * An Iceberg procedure that would put plaintext files into an encrypted table, and so is refused
 * before it starts. The commit would be refused too, but by then files would have been written or a
 * table renamed.
 */
final class GuardedProcedure extends IcebergProcedure {
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

  /** Procedures that make a table from another one's files. */
  private static final Set<String> INTO_NEW_TABLE = Set.of("migrate", "snapshot");

  /** Procedures that use the files of a table, and the parameter that names it. */
  private static final Map<String, String> SOURCES =
      Map.of("add_files", "source_table", "migrate", "table", "snapshot", "source_table");

  private final String name;

  GuardedProcedure(Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    super(procedure, catalog, encrypted);
    this.name = procedure.name().toLowerCase(Locale.ROOT);
  }

  /** Whether a procedure is guarded. */
  static boolean guards(String name) {
    return ON_ENCRYPTED_TABLE.containsKey(name) || INTO_NEW_TABLE.contains(name);
  }

  @Override
  Iterator<Scan> call(Procedure icebergs, InternalRow input) {
    refuseEncryptedSource(input);
    if (INTO_NEW_TABLE.contains(name)) {
      refuseEncryptedImport(input);
    } else {
      refuseOnEncryptedTable(input);
    }

    return icebergs.call(input);
  }

  /** Another table has no keys for the files of an encrypted one, nor is it to share them. */
  private void refuseEncryptedSource(InternalRow input) {
    String parameter = SOURCES.get(name);
    if (parameter == null || input.isNullAt(indexOf(parameter))) {
      return;
    }

    String source = input.getUTF8String(indexOf(parameter)).toString();
    find(source, catalogOfSource())
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

  /** The catalog of a source that is named without one, as Iceberg's procedure has it. */
  private CatalogPlugin catalogOfSource() {
    return name.equals("add_files") ? catalogs().v2SessionCatalog() : catalogs().currentCatalog();
  }

  private static CatalogManager catalogs() {
    return SparkSession.active().sessionState().catalogManager();
  }

  private void refuseEncryptedImport(InternalRow input) {
    int properties = indexOf("properties");
    String table = input.getUTF8String(indexOf("table")).toString();
    Map<String, String> own =
        input.isNullAt(properties) ? Map.of() : OperationProcedure.texts(input.getMap(properties));
    if (encryptsNewTable(table, own)) {
      throw new NotSupportedException(
              name + " keeps a table's files as they are: plaintext, in an encrypted table",
              "Copy the rows instead, which encrypts them: CREATE TABLE <new> USING iceberg"
                  + " TBLPROPERTIES ('encryption.key-id'='<master key id>') AS SELECT * FROM <the"
                  + " source>.")
          .inTable(table);
    }
  }

  /**
   * Whether a new table would be encrypted. Iceberg makes it in the catalog that its name has, or
   * in the current one, no matter in which the procedure is called.
   */
  private static boolean encryptsNewTable(String table, Map<String, String> own) {
    try {
      CatalogAndIdentifier found = parsed(table, catalogs().currentCatalog());
      EncryptedCatalog ours = EngineCatalog.encryptedOrNull(found.catalog());
      return ours == null
          ? EncryptionProperties.keyId(own) != null
          : ours.context().encryptsNewTable(Namespace.of(found.identifier().namespace()), own);
    } catch (ParseException e) {
      return false; // the procedure says so itself
    }
  }

  private void refuseOnEncryptedTable(InternalRow input) {
    boolean allowed =
        name.startsWith("compute_")
            && encrypted().context().settings().statistics() != StatisticsPolicy.REFUSE;
    find(input.getUTF8String(indexOf("table")).toString(), catalog())
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
