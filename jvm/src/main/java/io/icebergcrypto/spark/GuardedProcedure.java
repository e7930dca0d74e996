package io.icebergcrypto.spark;

import io.icebergcrypto.NotSupportedException;
import java.util.Iterator;
import java.util.Locale;
import java.util.Map;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;

/**
 * An Iceberg procedure that writes plaintext files into an encrypted table, and so is refused on one
 * before it starts. The guard on commits would refuse too, but the files would be there by then.
 */
final class GuardedProcedure implements UnboundProcedure, BoundProcedure {
  private static final Map<String, String> ADVICE =
      Map.of(
          "add_files",
          "Copy the rows instead, which encrypts them: INSERT INTO %s SELECT * FROM <the source>.",
          "compute_table_stats",
          "Do without, or accept plaintext statistics with the catalog property"
              + " encryption.statistics=plaintext (table %s).",
          "compute_partition_stats",
          "Do without, or accept plaintext statistics with the catalog property"
              + " encryption.statistics=plaintext (table %s).");

  private final String name;
  private final UnboundProcedure procedure;
  private final TableCatalog catalog;

  private GuardedProcedure(String name, UnboundProcedure procedure, TableCatalog catalog) {
    this.name = name;
    this.procedure = procedure;
    this.catalog = catalog;
  }

  /** Guards the procedures that need it; gives all others back as they are. */
  static UnboundProcedure guard(String name, UnboundProcedure procedure, TableCatalog catalog) {
    String lower = name.toLowerCase(Locale.ROOT);
    boolean guarded = ADVICE.containsKey(lower) && !(procedure instanceof GuardedProcedure);
    return guarded ? new GuardedProcedure(lower, procedure, catalog) : procedure;
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
    check(input);
    return bound().call(input);
  }

  private BoundProcedure bound() {
    return procedure.bind(new StructType());
  }

  private void check(InternalRow input) {
    ProcedureParameter[] parameters = parameters();
    for (int i = 0; i < parameters.length; i++) {
      if (parameters[i].name().equals("table") && !input.isNullAt(i)) {
        refuseIfEncrypted(input.getUTF8String(i).toString());
      }
    }
  }

  private void refuseIfEncrypted(String table) {
    String fullName;
    Map<String, String> properties;
    try {
      Spark3Util.CatalogAndIdentifier found =
          Spark3Util.catalogAndIdentifier(SparkSession.active(), table, catalog);
      fullName = found.catalog().name() + "." + found.identifier();
      properties = ((TableCatalog) found.catalog()).loadTable(found.identifier()).properties();
    } catch (NoSuchTableException | ParseException e) {
      return; // the procedure says so itself
    }

    boolean statisticsAllowed = name.startsWith("compute_") && plaintextStatisticsAllowed();
    if (properties.containsKey(TableProperties.ENCRYPTION_TABLE_KEY) && !statisticsAllowed) {
      throw new NotSupportedException(
              name + " would write plaintext files into an encrypted table",
              String.format(ADVICE.get(name), fullName))
          .inTable(fullName);
    }
  }

  private boolean plaintextStatisticsAllowed() {
    EncryptedSparkCatalog sparkCatalog =
        catalog instanceof EncryptedSparkCatalog direct
            ? direct
            : ((EncryptedSessionCatalog<?>) catalog).encryptedSparkCatalog();
    return sparkCatalog.encryptedCatalog().plaintextStatistics();
  }
}
