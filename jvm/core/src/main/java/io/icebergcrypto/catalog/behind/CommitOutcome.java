package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.CanonicalJson;
import io.icebergcrypto.metadata.LoadedMetadata;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseMetastoreTableOperations;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadata.MetadataLogEntry;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.UpdateRequirements;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.iceberg.hadoop.HadoopTableOperations;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A commit whose answer was lost. A client below may send it again, is told of a conflict, and
 * takes its own commit for another client's: Iceberg's pool of JDBC connections does, and a gateway
 * before a REST server may, which also refuses the second request because its snapshot or its table
 * exists. Hadoop's catalog takes each failed rename for a conflict. Iceberg then deletes what the
 * commit wrote, or commits the same files again: a snapshot that is there it takes for one to roll
 * back to, which takes the commits on top out of the branch. So after a failure the table is
 * loaded, and a commit that is there was made. Where nothing shows that it was not, its state is
 * unknown.
 */
public final class CommitOutcome {
  private static final Logger LOG = LoggerFactory.getLogger(CommitOutcome.class);

  /** SQL's class of states for a connection that cannot be made, or broke. */
  private static final String CONNECTION_EXCEPTION = "08";

  /** What Iceberg's catalogs, also behind a server, say of a view, and Polaris of other tables. */
  private static final Pattern IS_NO_TABLE =
      Pattern.compile("(View|Generic table) with same name already exists");

  private CommitOutcome() {}

  /**
   * Commits.
   *
   * @param table the table's operations in the catalog behind
   * @param changes those that the commit makes. What metadata has and its base has not is not the
   *     same: a replacement may be of an older base, and has what has expired since.
   * @throws CommitStateUnknownException when nobody knows whether the commit was made
   */
  static void commit(
      String tableName,
      TableOperations table,
      TableMetadata base,
      TableMetadata metadata,
      List<MetadataUpdate> changes) {
    commit(tableName, table, ServerRefusal.isOfRest(table), base, metadata, changes);
  }

  /** Also for operations that only pass for those of a REST server. */
  static void commit(
      String tableName,
      TableOperations table,
      boolean isOfRest,
      TableMetadata base,
      TableMetadata metadata,
      List<MetadataUpdate> changes) {
    boolean isSent = base == null || !comparesBase(table) || table.current() == base;
    try {
      if (isOfRest) {
        ServerRefusal.send(tableName, () -> table.commit(base, metadata));
      } else {
        table.commit(base, metadata);
      }
    } catch (RuntimeException e) {
      boolean isUnknown = e instanceof CommitStateUnknownException;
      if (isUnknown && !isOfRest // Iceberg's operations have looked
          || !isSent && e instanceof CommitFailedException) {
        throw e;
      }

      List<Snapshot> added = ServerRefusal.added(metadata, changes);
      boolean isThere = isOfRest && names(e, added);
      boolean isMade;
      boolean isNotMade;
      try {
        TableMetadata now = table.refresh();
        boolean isConflict = isOfRest && e instanceof CommitFailedException;
        if ((isConflict || isThere) && !isNewer(now, base)) {
          now = table.refresh(); // of a cache, or a replica that lags
        }

        isMade = now != null && isIn(table, now, base, metadata, changes, added);
        boolean isTold = !isConflict || isNewer(now, base);
        isNotMade =
            !isMade
                && !isThere
                && (isTold && (now == null || isAbsent(isOfRest, now, base, metadata, added))
                    || isConflict && !fits(table, base, metadata, changes, added));
      } catch (RuntimeException unreadable) {
        e.addSuppressed(unreadable);
        boolean isRefused = isOfRest ? isRefused(e, unreadable) : isOfAnotherKind(e, unreadable);
        throw isUnknown || isAnotherTable(unreadable) || isRefused && !isThere
            ? e
            : unknown("the catalog failed", e, tableName);
      }

      if (!isMade) {
        throw isUnknown || isNotMade && !mayComeYet(e, table)
            ? e
            : unknown("the catalog failed", e, tableName);
      }

      LOG.warn("{}: the commit was made, although it failed", tableName, e);
    }
  }

  /** Whether a commit fails, and nothing is sent, where they have other metadata than its base. */
  private static boolean comparesBase(TableOperations table) {
    return table instanceof BaseMetastoreTableOperations || table instanceof HadoopTableOperations;
  }

  /**
   * Whether a refusal names a snapshot of the request, and not only a file that is named after it:
   * the snapshot is there, and the request came twice.
   */
  private static boolean names(RuntimeException refusal, List<Snapshot> added) {
    String words = String.valueOf(refusal.getMessage());
    return added.stream()
        .map(own -> Pattern.compile("(?<![\\w-])" + own.snapshotId() + "(?![\\w-])"))
        .anyMatch(id -> id.matcher(words).find());
  }

  /**
   * Whether a REST server's answers to a commit and to the load after it agree that nothing was
   * done: there is no table, or the login has expired.
   */
  private static boolean isRefused(RuntimeException commit, RuntimeException load) {
    if (load instanceof NoSuchTableException || load instanceof NoSuchNamespaceException) {
      return isOfAnotherKind(commit, load)
              && IS_NO_TABLE.matcher(String.valueOf(commit.getMessage())).lookingAt()
          || !(commit instanceof CommitFailedException || commit instanceof AlreadyExistsException);
    }

    return isOfLogin(load) && isOfLogin(commit);
  }

  /**
   * Whether a table was refused because there is one of its name, and there is no such table: it is
   * a view, or another format's table. A server's load may be older than its refusal.
   */
  private static boolean isOfAnotherKind(RuntimeException commit, RuntimeException load) {
    return commit instanceof AlreadyExistsException && load instanceof NoSuchTableException;
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

  /** Whether metadata shows a commit since, with which one of the base is in conflict. */
  private static boolean isNewer(TableMetadata now, TableMetadata base) {
    return base == null
        || now == null
        || !LoadedMetadata.isSame(now, base) && !LoadedMetadata.isOlder(now, base);
  }

  /**
   * Whether the metadata in force, or what its log names, has what a commit adds and no other
   * commit does. Commits on top may have removed some of it.
   */
  private static boolean isIn(
      TableOperations table,
      TableMetadata now,
      TableMetadata base,
      TableMetadata metadata,
      List<MetadataUpdate> changes,
      List<Snapshot> added) {
    boolean isVisible =
        base == null && Objects.equals(now.uuid(), metadata.uuid())
            || (added.isEmpty()
                ? hasAddedKeys(now, base, metadata, changes)
                : added.stream().anyMatch(snapshot -> has(now, snapshot) || has(base, snapshot))
                    || since(base, now, added).anyMatch(child -> isChild(child, now, added)));
    return isVisible
        || isSame(now, metadata)
        || now.previousFiles().stream()
            .filter(entry -> entry.timestampMillis() == metadata.lastUpdatedMillis())
            .map(entry -> TableMetadataParser.read(table.io(), entry.file()))
            .anyMatch(between -> isSame(between, metadata));
  }

  /**
   * Whether a commit that cannot be seen was not made. It may also have been undone since: its
   * snapshots expire, and the log is short. On REST the log is the server's; a commit without
   * snapshots that is made again undoes no other there. A snapshot that is there with another list
   * was made by an earlier attempt: Iceberg's next one would roll back to it.
   */
  private static boolean isAbsent(
      boolean isOfRest,
      TableMetadata now,
      TableMetadata base,
      TableMetadata metadata,
      List<Snapshot> added) {
    if (!Objects.equals(now.uuid(), metadata.uuid())) {
      return true; // of another table
    }

    if (added.stream().anyMatch(own -> now.snapshot(own.snapshotId()) != null)) {
      return false;
    }

    boolean isTold =
        isOfRest ? added.isEmpty() || metadata.formatVersion() == 1 : isInLog(now, base);
    return isTold
        || added.stream()
            .filter(snapshot -> snapshot.sequenceNumber() > 0) // version 1 has none
            .anyMatch(
                snapshot ->
                    now.lastSequenceNumber() < snapshot.sequenceNumber()
                        || since(base, now, added)
                            .anyMatch(
                                other -> other.sequenceNumber() == snapshot.sequenceNumber()));
  }

  /**
   * Whether a server could take a commit on its base. It could, unless that is a replacement which
   * was begun earlier: other commits may have given away the ids of its rows, or of its columns,
   * partition fields or orders. One without a snapshot can be made twice without harm.
   */
  private static boolean fits(
      TableOperations table,
      TableMetadata base,
      TableMetadata metadata,
      List<MetadataUpdate> changes,
      List<Snapshot> added) {
    if (base == null || isInLog(metadata, base)) {
      return true; // nothing is in its way
    }

    if (added.isEmpty()
        || added.stream()
            .map(Snapshot::firstRowId)
            .anyMatch(id -> id != null && id < base.nextRowId())) {
      return false;
    }

    List<MetadataLogEntry> log = metadata.previousFiles();
    String begun = log.get(log.size() - 1).file();
    try {
      UpdateRequirements.forReplaceTable(TableMetadataParser.read(table.io(), begun), changes)
          .forEach(requirement -> requirement.validate(base));
      return true;
    } catch (CommitFailedException e) {
      return false;
    }
  }

  private static boolean isInLog(TableMetadata now, TableMetadata base) {
    return base != null
        && Stream.concat(
                Stream.of(now.metadataFileLocation()),
                now.previousFiles().stream().map(MetadataLogEntry::file))
            .anyMatch(file -> Objects.equals(file, base.metadataFileLocation()));
  }

  /** The snapshots that other commits have added since. */
  private static Stream<Snapshot> since(
      TableMetadata base, TableMetadata now, List<Snapshot> added) {
    return now.snapshots().stream()
        .filter(snapshot -> !has(base, snapshot))
        .filter(
            snapshot -> added.stream().noneMatch(own -> own.snapshotId() == snapshot.snapshotId()));
  }

  /** Whether a snapshot that has expired is the parent. */
  private static boolean isChild(Snapshot snapshot, TableMetadata now, List<Snapshot> added) {
    return snapshot.parentId() != null
        && now.snapshot(snapshot.parentId()) == null
        && added.stream().anyMatch(own -> own.snapshotId() == snapshot.parentId());
  }

  /** Not by its id alone, which the attempts of one commit share. */
  private static boolean has(TableMetadata metadata, Snapshot snapshot) {
    Snapshot same = metadata == null ? null : metadata.snapshot(snapshot.snapshotId());
    return same != null
        && Objects.equals(same.manifestListLocation(), snapshot.manifestListLocation());
  }

  /** Whether a commit adds keys, all of which are there. */
  private static boolean hasAddedKeys(
      TableMetadata now, TableMetadata base, TableMetadata metadata, List<MetadataUpdate> changes) {
    Set<List<Object>> added =
        keys(
            changes.stream()
                .filter(MetadataUpdate.AddEncryptionKey.class::isInstance)
                .map(change -> ((MetadataUpdate.AddEncryptionKey) change).key()));
    added.retainAll(keys(metadata));
    added.removeAll(keys(base));
    return !added.isEmpty() && keys(now).containsAll(added);
  }

  /** Not by their ids alone, which keys keep when they are rewrapped. */
  private static Set<List<Object>> keys(Stream<EncryptedKey> keys) {
    return keys.map(key -> List.<Object>of(key.keyId(), key.encryptedKeyMetadata()))
        .collect(Collectors.toSet());
  }

  private static Set<List<Object>> keys(TableMetadata metadata) {
    return metadata == null ? Set.of() : keys(metadata.encryptionKeys().stream());
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
