package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.encrypt.CopyLog;
import io.icebergcrypto.spark.call.Parameter;
import io.icebergcrypto.spark.call.Procedure;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.read.Scan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@code remove_orphan_files}: it spares what {@code encrypt_table} has copied, and what other
 * branches of the catalog may need.
 */
final class RemoveOrphanFiles extends IcebergProcedure {
  static final String NAME = "remove_orphan_files";

  private static final Logger LOG = LoggerFactory.getLogger(RemoveOrphanFiles.class);

  /** Iceberg's, if no age is given; and what it requires of one that is. */
  private static final int USUAL_AGE_DAYS = 3;

  private static final long DAY_MILLIS = 24L * 60 * 60 * 1000;

  RemoveOrphanFiles(Procedure procedure, TableCatalog catalog, EncryptedCatalog encrypted) {
    super(procedure, catalog, encrypted);
  }

  @Override
  Iterator<Scan> call(Procedure icebergs, InternalRow input) {
    Optional<Found> table =
        find(textOrNull(input, "table"), catalog())
            .filter(found -> found.catalog().equals(catalog().name()));
    table
        .filter(Found::isEncrypted)
        .ifPresent(
            found ->
                encrypted()
                    .context()
                    .behind()
                    .requireOwnFiles(found.fullName(), found.properties()));
    return icebergs.call(withoutCopies(input, table));
  }

  /**
   * Of a plaintext table of which {@code encrypt_table} has copied some, no table has the copies
   * yet: only files that are older are removed.
   */
  private InternalRow withoutCopies(InternalRow input, Optional<Found> table) {
    Long begun =
        table
            .filter(found -> !found.isEncrypted())
            .map(found -> begunMillis(found.identifier()))
            .orElse(null);
    int olderThan = indexOf("older_than");
    long keptMicros = begun == null ? Long.MAX_VALUE : (begun - DAY_MILLIS) * 1000;
    if (begun == null || !input.isNullAt(olderThan) && input.getLong(olderThan) < keptMicros) {
      return input;
    }

    long usual = System.currentTimeMillis() - USUAL_AGE_DAYS * DAY_MILLIS;
    List<Parameter> parameters = parameters();
    Object[] values = new Object[parameters.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = input.isNullAt(i) ? null : input.get(i, parameters.get(i).type());
    }

    values[olderThan] = Math.min(keptMicros, usual * 1000);
    LOG.info("{} only removes files from before {}: encrypt_table has begun", NAME, begun);
    return new GenericInternalRow(values);
  }

  private Long begunMillis(Identifier identifier) {
    try {
      Long begun = CopyLog.begunMillis(unchecked(identifier));
      reload(catalog(), identifier); // encrypt_table deletes its log after its commit
      return begun;
    } catch (org.apache.iceberg.exceptions.NoSuchTableException e) {
      return null; // a table of another format, in the session's catalog
    }
  }

  /** The table that a name is of, or that it selects a branch or snapshot of. */
  private BaseTable unchecked(Identifier identifier) {
    CatalogContext context = encrypted().context();
    try {
      return context.unchecked(Spark3Util.identifierToTableIdentifier(identifier));
    } catch (org.apache.iceberg.exceptions.NoSuchTableException e) {
      Identifier table = withoutSelector(identifier).orElseThrow(() -> e);
      return context.unchecked(Spark3Util.identifierToTableIdentifier(table));
    }
  }
}
