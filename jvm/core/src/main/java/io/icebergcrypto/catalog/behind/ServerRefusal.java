package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.metadata.LoadedMetadata;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.BadRequestException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.exceptions.ServiceFailureException;
import org.apache.iceberg.rest.Endpoint;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.RESTCatalog;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A REST server's answer that it does not know a request, or does not do what it asks for: nothing
 * was done. An answer that leaves open whether it was (5xx but 501, unless it says that the request
 * could not be read; a time-out), and one about a login, a permission or a conflict, do not count.
 */
public final class ServerRefusal {
  // Iceberg's error names the statuses that it has no exception for
  private static final Pattern CODE = Pattern.compile("\\(code: (405|406|422), ");
  // Jackson's word, which Nessie sends with a 500
  private static final Pattern NOT_READ = Pattern.compile("Could not resolve type id '[a-z-]+' as");

  private static final String LAGS =
      "Or it shows the table as it was before the commit, from a cache or a replica that lags"
          + " behind: load the table again later. If the key is there, all is well.";

  private static final Logger LOG = LoggerFactory.getLogger(ServerRefusal.class);

  private ServerRefusal() {}

  /**
   * Whether an error is one.
   *
   * @param client the catalog or the operations that threw it
   */
  public static boolean is(RuntimeException e, Object client) {
    return isOfRest(client) && is(e);
  }

  /** Whether a catalog, or a table's operations, are those of a REST server. */
  static boolean isOfRest(Object client) {
    return client.getClass().getPackage() == RESTCatalog.class.getPackage();
  }

  private static boolean is(RuntimeException e) {
    return isAnswer(e) && isRefusal(e);
  }

  private static boolean isRefusal(RuntimeException e) {
    return e instanceof BadRequestException // 400
        || e instanceof IllegalArgumentException // 400 that says so
        || e instanceof NoSuchTableException // 404
        || e instanceof NotFoundException
        || e instanceof UnsupportedOperationException // 501, or no such endpoint
        || e.getClass() == RESTException.class && CODE.matcher(e.getMessage()).find()
        || e instanceof CommitStateUnknownException
            && e.getCause() instanceof ServiceFailureException // 500
            && NOT_READ.matcher(e.getMessage()).find();
  }

  /**
   * Whether the server's answer is the error, by its status. Iceberg's client throws errors of the
   * same types for an answer that it cannot read, after the server has done what it was asked for.
   */
  private static boolean isAnswer(RuntimeException e) {
    return Arrays.stream(e.getStackTrace())
        .map(StackTraceElement::getClassName)
        .anyMatch(
            name ->
                name.startsWith(ErrorHandlers.class.getName())
                    || name.equals(Endpoint.class.getName())); // nothing was sent
  }

  /**
   * Sends a request that changes something.
   *
   * @throws CommitStateUnknownException when the server may have done it: its answer was lost, or
   *     cannot be read
   */
  static void send(String tableName, Runnable request) {
    try {
      request.run();
    } catch (CommitStateUnknownException e) {
      throw e;
    } catch (RuntimeException e) {
      throw isAnswer(e)
          ? e
          : CommitOutcome.unknown("the catalog's server gave no readable answer", e, tableName);
    }
  }

  /**
   * Whether a server has refused a new table for its key id, with any status: those on iceberg-rust
   * have no KMS, and say 409.
   *
   * @param client the catalog that threw it
   */
  public static boolean isOfKeyId(RuntimeException e, Object client) {
    return isOfRest(client)
        && isAnswer(e)
        && e.getMessage() != null
        && e.getMessage().contains(EncryptionProperties.KEY_ID);
  }

  /** What to say then. */
  public static IcebergCryptoException ofKeyId(RuntimeException e) {
    return new NotSupportedException(
        String.format(
            "the catalog's server creates no table with %s: %s",
            EncryptionProperties.KEY_ID, e.getMessage()),
        "Nothing was created. The server wants to decrypt tables itself, which it does not need to"
            + " do: use a version of it that leaves that to its clients, or another catalog.",
        e);
  }

  /** What to say where a table would be created in a transaction. */
  public static IcebergCryptoException ofStagedCreate(RuntimeException e) {
    return new OfStagedCreate(
        "the catalog's server does not create it in a transaction (stage-create): "
            + e.getMessage(),
        "Nothing was created. CREATE TABLE first, then INSERT INTO it; in Java, create() and then"
            + " newTransaction() of the table.",
        e);
  }

  /** Whether an error is of {@link #ofStagedCreate}. */
  public static boolean isOfStagedCreate(RuntimeException e) {
    return e instanceof OfStagedCreate;
  }

  private static final class OfStagedCreate extends NotSupportedException {
    private static final long serialVersionUID = 1L;

    private OfStagedCreate(String problem, String hint, Throwable cause) {
      super(problem, hint, cause);
    }
  }

  /**
   * Checks that a REST server has kept what decrypts a table, as far as its answer to a commit
   * shows: one that does not know format version 3 may drop it silently. An answer from before the
   * commit (of a cache, of a replica that lags, or of another thread's load) shows nothing: the
   * table is then loaded again.
   *
   * @param client the table's operations in the catalog behind, after the commit
   * @param before what they had before it; null when the commit creates the table
   * @param committed the metadata that was committed
   * @param reload loads the metadata in force
   * @throws LostKeys when it has not; the commit is done
   */
  public static void checkKept(
      TableOperations client,
      TableMetadata before,
      TableMetadata committed,
      String tableName,
      Supplier<TableMetadata> reload) {
    if (!isOfRest(client)) {
      return;
    }

    TableMetadata answer = client.current();
    if (answer == before && answer.metadataFileLocation() == null // the client reads no answer
        || !Objects.equals(answer.uuid(), committed.uuid())) { // of an earlier table of this name
      return;
    }

    String lost = lost(answer, committed);
    if (lost != null && !isSince(answer, before, committed)) {
      try {
        answer = reload.get();
      } catch (RuntimeException e) {
        LOG.warn("{}: it is not known what the server kept of a commit", tableName, e);
        return;
      }

      lost = lost(answer, committed);
    }

    if (lost == null) {
      return;
    }

    boolean since = isSince(answer, before, committed);
    if (!since && !added(committed, committed.changes()).isEmpty()) {
      LOG.warn("{}: the server does not show a commit that it made", tableName);
      return;
    }

    throw new LostKeys(tableName, since ? whatToDo(before) : LAGS, lost);
  }

  /** The snapshots that a commit adds. A transaction may add one, and let it expire. */
  static List<Snapshot> added(TableMetadata committed, List<MetadataUpdate> changes) {
    return changes.stream()
        .filter(MetadataUpdate.AddSnapshot.class::isInstance)
        .map(change -> ((MetadataUpdate.AddSnapshot) change).snapshot())
        .filter(snapshot -> committed.snapshot(snapshot.snapshotId()) != null)
        .toList();
  }

  /** Whether metadata shows a commit, or anything after it. */
  private static boolean isSince(
      TableMetadata answer, TableMetadata before, TableMetadata committed) {
    List<Snapshot> added = added(committed, committed.changes());
    return added.isEmpty()
        ? before == null
            || !LoadedMetadata.isSame(answer, before) && !LoadedMetadata.isOlder(answer, before)
        : added.stream().allMatch(snapshot -> answer.snapshot(snapshot.snapshotId()) != null);
  }

  /** What of a commit's keys is not in an answer; null: nothing. */
  private static String lost(TableMetadata answer, TableMetadata committed) {
    Set<String> kept =
        answer.encryptionKeys().stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
    Set<String> sent =
        committed.encryptionKeys().stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
    for (MetadataUpdate change : committed.changes()) {
      if (change instanceof MetadataUpdate.AddEncryptionKey added) {
        String id = added.key().keyId();
        if (sent.contains(id) && !kept.contains(id)) {
          return String.format("key %s in encryption-keys", id);
        }
      } else if (change instanceof MetadataUpdate.AddSnapshot added) {
        Snapshot snapshot = answer.snapshot(added.snapshot().snapshotId());
        if (snapshot != null && !Objects.equals(snapshot.keyId(), added.snapshot().keyId())) {
          return String.format("the key-id of snapshot %d", snapshot.snapshotId());
        }
      }
    }

    return null;
  }

  private static String whatToDo(TableMetadata before) {
    if (before == null || before.currentSnapshot() == null) {
      return "What the commit wrote cannot be read: keep its source, and use another table.";
    }

    String file = before.metadataFileLocation();
    return String.format(
        "What the commit wrote cannot be read; the rows from before it can. Do not drop the"
            + " table, as the server may delete its files: %sroll back to snapshot %d; if its"
            + " keys are gone, too, register that file in a catalog that keeps keys.",
        file == null ? "save its last metadata file from before, " : "save " + file + ", ",
        before.currentSnapshot().snapshotId());
  }

  /** A server has made a commit and lost a key of it. Not a failure after which files may go. */
  public static final class LostKeys extends CommitStateUnknownException {
    private static final long serialVersionUID = 1L;

    private final transient IcebergCryptoException problem;

    private LostKeys(String tableName, String whatToDo, String lost) {
      this(
          whatToDo,
          new NotSupportedException(
                  String.format("the catalog's server made the commit without %s", lost),
                  "It does not keep what format version 3 has for encryption, so it cannot keep"
                      + " encrypted tables: use a version of it that does, or another catalog.")
              .inTable(tableName));
    }

    private LostKeys(String whatToDo, IcebergCryptoException problem) {
      super(problem.withHint(whatToDo));
      this.problem = problem;
    }

    /** The problem alone, for a table that was new and empty: it has nothing to save. */
    public IcebergCryptoException ofNewTable() {
      return problem;
    }
  }

  /** What to say where the server does not take a table's keys. */
  public static IcebergCryptoException ofKeys(RuntimeException e) {
    Throwable answer = e instanceof CommitStateUnknownException ? e.getCause() : e;
    return new NotSupportedException(
        "the catalog's server refused a commit that adds a key: " + answer.getMessage(),
        "Nothing was committed. If the server does not know the update add-encryption-key of"
            + " Iceberg's REST specification, it cannot keep encrypted tables: use a version that"
            + " does, or another catalog.",
        e);
  }
}
