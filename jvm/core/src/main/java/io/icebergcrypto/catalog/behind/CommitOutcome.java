package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.CanonicalJson;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.List;
import java.util.Objects;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A commit whose answer was lost. A client below may send it again, is told of a conflict, and
 * takes its own commit for another client's: Iceberg's pool of JDBC connections does, and a gateway
 * before a REST server may, which also refuses the second request because its snapshot or its table
 * exists. Hadoop's catalog takes each failed rename for a conflict. Iceberg then deletes what the
 * commit wrote, or commits the same files again. So after a failure the table is loaded, and a
 * commit that is there was made.
 */
public final class CommitOutcome {
  private static final Logger LOG = LoggerFactory.getLogger(CommitOutcome.class);

  /** SQL's class of states for a connection that cannot be made, or broke. */
  private static final String CONNECTION_EXCEPTION = "08";

  private CommitOutcome() {}

  /**
   * Commits.
   *
   * @param table the table's operations in the catalog behind
   * @throws CommitStateUnknownException when nobody knows whether the commit was made
   */
  static void commit(
      String tableName, TableOperations table, TableMetadata base, TableMetadata metadata) {
    boolean isOfRest = ServerRefusal.isOfRest(table);
    try {
      if (isOfRest) {
        ServerRefusal.send(tableName, () -> table.commit(base, metadata));
      } else {
        table.commit(base, metadata);
      }
    } catch (RuntimeException e) {
      boolean isUnknown = e instanceof CommitStateUnknownException;
      if (isUnknown && !isOfRest) {
        throw e; // Iceberg's operations have looked
      }

      boolean isMade;
      try {
        TableMetadata now = table.refresh();
        isMade = now != null && isIn(table, now, base, metadata);
      } catch (RuntimeException unreadable) {
        e.addSuppressed(unreadable);
        throw isUnknown || isAnotherTable(unreadable) || isOfRest && isRefused(e, unreadable)
            ? e
            : unknown("the catalog failed", e, tableName);
      }

      if (!isMade) {
        throw mayComeYet(e, table) ? unknown("the catalog failed", e, tableName) : e;
      }

      LOG.warn("{}: the commit was made, although it failed", tableName, e);
    }
  }

  /**
   * Whether a REST server's answers to a commit and to the load after it agree that nothing was
   * done: there is no table, or the login has expired.
   */
  private static boolean isRefused(RuntimeException commit, RuntimeException load) {
    if (load instanceof NoSuchTableException || load instanceof NoSuchNamespaceException) {
      return !(commit instanceof CommitFailedException || commit instanceof AlreadyExistsException);
    }

    return isOfLogin(load) && isOfLogin(commit);
  }

  private static boolean isOfLogin(RuntimeException e) {
    return e instanceof NotAuthorizedException || e instanceof ForbiddenException;
  }

  /** One of the same name, made since: Iceberg's operations do not go on with it. */
  private static boolean isAnotherTable(RuntimeException e) {
    return e instanceof IllegalStateException
        && String.valueOf(e.getMessage()).startsWith("Table UUID does not match");
  }

  /**
   * A database may still be at what it was asked for when the connection broke. A server that says
   * "conflict" for a key id it does not know has made the commit, and may show it later.
   */
  private static boolean mayComeYet(RuntimeException e, TableOperations table) {
    if (e instanceof CommitFailedException) {
      return ServerRefusal.isOfKeyId(e, table);
    }

    return Causes.any(
        e,
        cause ->
            cause instanceof SQLTimeoutException
                || cause instanceof SQLException sql
                    && String.valueOf(sql.getSQLState()).startsWith(CONNECTION_EXCEPTION));
  }

  /** What to say where a commit may have been made; no file may be deleted. */
  public static CommitStateUnknownException unknown(
      String what, RuntimeException failure, String tableName) {
    return new CommitStateUnknownException(
        new IcebergCryptoException(
                String.format("%s, and may have made the commit: %s", what, failure.getMessage()),
                "Load the table to see whether it did, before you commit again. No file was"
                    + " deleted. If the catalog no longer loads the table, its last metadata"
                    + " file can be registered in another catalog.",
                failure)
            .inTable(tableName));
  }

  /**
   * Whether the metadata in force has what a commit adds and no other commit has: its snapshots, or
   * its keys. One that adds neither is the metadata in force, or was so between that and its base.
   */
  private static boolean isIn(
      TableOperations table, TableMetadata now, TableMetadata base, TableMetadata metadata) {
    List<Snapshot> snapshots = ServerRefusal.added(metadata);
    if (!snapshots.isEmpty()) {
      // a commit is atomic: where one is there, others have expired since
      return snapshots.stream().anyMatch(snapshot -> has(now, snapshot));
    }

    List<EncryptedKey> keys =
        metadata.changes().stream()
            .filter(MetadataUpdate.AddEncryptionKey.class::isInstance)
            .map(change -> ((MetadataUpdate.AddEncryptionKey) change).key())
            .filter(key -> has(metadata, key))
            .toList();
    if (!keys.isEmpty()) {
      return keys.stream().allMatch(key -> has(now, key));
    }

    return isSame(now, metadata)
        || now.previousFiles().stream()
            .dropWhile(entry -> base != null && !entry.file().equals(base.metadataFileLocation()))
            .skip(base == null ? 0 : 1)
            .filter(entry -> entry.timestampMillis() == metadata.lastUpdatedMillis())
            .map(entry -> TableMetadataParser.read(table.io(), entry.file()))
            .anyMatch(between -> isSame(between, metadata));
  }

  /** Not by its id alone, which the attempts of one commit share. */
  private static boolean has(TableMetadata metadata, Snapshot snapshot) {
    Snapshot same = metadata.snapshot(snapshot.snapshotId());
    return same != null
        && Objects.equals(same.manifestListLocation(), snapshot.manifestListLocation());
  }

  /** Not by its id alone, which a key keeps when it is rewrapped. */
  private static boolean has(TableMetadata metadata, EncryptedKey key) {
    return metadata.encryptionKeys().stream()
        .anyMatch(
            other ->
                other.keyId().equals(key.keyId())
                    && other.encryptedKeyMetadata().equals(key.encryptedKeyMetadata()));
  }

  private static boolean isSame(TableMetadata one, TableMetadata other) {
    return one.lastUpdatedMillis() == other.lastUpdatedMillis()
        && one.lastSequenceNumber() == other.lastSequenceNumber()
        && canonical(one).equals(canonical(other));
  }

  private static String canonical(TableMetadata metadata) {
    return CanonicalJson.canonical(CanonicalJson.of(metadata));
  }
}
