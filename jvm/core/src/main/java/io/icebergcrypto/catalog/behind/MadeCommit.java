package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.CanonicalDocument;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.List;
import java.util.stream.Stream;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A commit whose answer was lost. Iceberg's JDBC catalog sends its update again when the connection
 * broke, finds that it does not apply any more, and takes its own commit for somebody else's; the
 * Hadoop catalog takes each failed rename for a conflict. Iceberg then deletes what the commit
 * wrote, or commits the same files once more. So after a failure the table is loaded, and a commit
 * that is there was made.
 */
final class MadeCommit {
  private static final Logger LOG = LoggerFactory.getLogger(MadeCommit.class);

  /** SQL's class of states for a connection that cannot be made, or broke. */
  private static final String CONNECTION_EXCEPTION = "08";

  private MadeCommit() {}

  /**
   * Commits.
   *
   * @param table the table's operations in the catalog behind
   * @throws CommitStateUnknownException when nobody knows whether the commit was made
   */
  static void commit(
      String tableName, TableOperations table, TableMetadata base, TableMetadata metadata) {
    try {
      table.commit(base, metadata);
    } catch (CommitStateUnknownException e) {
      throw e;
    } catch (RuntimeException e) {
      boolean isMade;
      try {
        TableMetadata now = table.refresh();
        isMade = now != null && isIn(table, now, base, metadata);
      } catch (RuntimeException unreadable) {
        e.addSuppressed(unreadable);
        throw isAnotherTable(unreadable) ? e : unknown(tableName, e);
      }

      if (!isMade) {
        throw mayComeYet(e) ? unknown(tableName, e) : e;
      }

      LOG.warn("{}: the commit was made, although it failed", tableName, e);
    }
  }

  /** One of the same name, made since: Iceberg's operations do not go on with it. */
  private static boolean isAnotherTable(RuntimeException e) {
    return e instanceof IllegalStateException
        && String.valueOf(e.getMessage()).startsWith("Table UUID does not match");
  }

  /** A database may still be at what it was asked for when the connection broke. */
  private static boolean mayComeYet(RuntimeException e) {
    return !(e instanceof CommitFailedException)
        && Causes.any(
            e,
            cause ->
                cause instanceof SQLTimeoutException
                    || cause instanceof SQLException sql
                        && String.valueOf(sql.getSQLState()).startsWith(CONNECTION_EXCEPTION));
  }

  private static CommitStateUnknownException unknown(String tableName, RuntimeException failure) {
    return new CommitStateUnknownException(
        new IcebergCryptoException(
                "a commit failed, and may have been made: " + failure.getMessage(),
                "Load the table to see whether it was, before you commit again. No file was"
                    + " deleted.",
                failure)
            .inTable(tableName));
  }

  /**
   * Whether the metadata in force has the snapshots of a commit. One without snapshots is the
   * metadata in force, or was so between that and its base.
   */
  private static boolean isIn(
      TableOperations table, TableMetadata now, TableMetadata base, TableMetadata metadata) {
    List<Snapshot> added = ServerRefusal.added(metadata);
    if (!added.isEmpty() || isSame(now, metadata)) {
      return added.stream().allMatch(snapshot -> now.snapshot(snapshot.snapshotId()) != null);
    }

    List<MetadataLogEntry> log = now.previousFiles();
    Stream<MetadataLogEntry> since =
        log.stream()
            .dropWhile(entry -> base != null && !entry.file().equals(base.metadataFileLocation()))
            .skip(base == null ? 0 : 1);
    return since
        .filter(entry -> entry.timestampMillis() == metadata.lastUpdatedMillis())
        .map(entry -> TableMetadataParser.read(table.io(), entry.file()))
        .anyMatch(between -> isSame(between, metadata));
  }

  private static boolean isSame(TableMetadata one, TableMetadata other) {
    return one.lastUpdatedMillis() == other.lastUpdatedMillis()
        && one.lastSequenceNumber() == other.lastSequenceNumber()
        && CanonicalDocument.of(one).isSame(CanonicalDocument.of(other));
  }
}
