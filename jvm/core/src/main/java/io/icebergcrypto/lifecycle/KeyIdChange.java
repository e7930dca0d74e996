package io.icebergcrypto.lifecycle;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.behind.CommitOutcome;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.metadata.LoadedMetadata;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CleanableFailure;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.io.FileIO;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one commit that gives a plaintext table a key id, and encrypted files in place of its own;
 * and the one that takes it away.
 */
public final class KeyIdChange {
  private static final Logger LOG = LoggerFactory.getLogger(KeyIdChange.class);

  private KeyIdChange() {}

  /**
   * Replaces the metadata of a plaintext table.
   *
   * @param base the metadata in force
   * @param next made of the base, with its changes: a key id, a KEK that it wraps, and without the
   *     snapshots and statistics files of the base
   * @throws CommitFailedException when another commit came first; nothing was changed
   * @throws CommitStateUnknownException when nobody knows whether it was made
   * @throws NotSupportedException when the next metadata keeps something of the plaintext; nothing
   *     was changed
   * @throws PlaintextException when it names a file without a key; nothing was changed
   * @throws IcebergCryptoException any other refusal of a commit; nothing was changed
   */
  public static void commit(
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      TableMetadata base,
      TableMetadata next) {
    Table table = catalog.loadTable(identifier);
    TableOperations ops = ((HasTableOperations) table).operations();
    TableMetadata current = ops.current();
    if (!LoadedMetadata.isSame(current, base)) {
      throw new CommitFailedException(
          "Cannot commit: the metadata of %s is %s now, not %s",
          table.name(), current.metadataFileLocation(), base.metadataFileLocation());
    }

    CancelledException.check();
    commit(catalog, identifier, base, () -> ops.commit(current, next));
  }

  /**
   * Looks for what another client has done just before a table was encrypted, on a REST catalog,
   * whose commits do not conflict when they change other branches: for plaintext that it added, and
   * for branches and tags that are gone.
   *
   * @param base the metadata that the commit was made on; while a server still shows that one, or
   *     an older one, there is nothing to look at
   * @throws PlaintextException when there is plaintext; the table is encrypted nevertheless
   * @throws IcebergCryptoException when there are such branches and tags, or the table cannot be
   *     loaded, likewise
   */
  public static void requireEncrypted(
      EncryptedCatalog catalog, TableIdentifier identifier, TableMetadata base) {
    BaseTable table =
        loaded(
            () -> (BaseTable) catalog.loadTable(identifier),
            catalog.context().fullName(identifier),
            "The table was encrypted by this call, which need not be made again. It is not known"
                + " whether another client added plaintext just before: verify_encryption tells.");
    TableMetadata now = table.operations().current();
    if (!LoadedMetadata.isSame(now, base) && !LoadedMetadata.isOlder(now, base)) {
      requireEncrypted(table.name(), now);
      requireRefs(
          table,
          base,
          now,
          before ->
              String.format(
                  "The table is encrypted (%s is '%s'), and has all that it showed before."
                      + " Until purge_plaintext, the rows of these snapshots can be read from %s.",
                  EncryptionProperties.KEY_ID,
                  EncryptionProperties.keyId(now.properties()),
                  now.properties().get(EncryptionProperties.PLAINTEXT_METADATA)));
    }
  }

  /**
   * Looks for what another client has done just before a table was decrypted, likewise: for
   * encrypted snapshots that it added, and for branches and tags that are gone.
   *
   * @param base the metadata that the commit was made on
   * @throws IcebergCryptoException when there is any, or the table cannot be loaded; everything
   *     else is plaintext nevertheless
   */
  public static void requireDecrypted(
      EncryptedCatalog catalog, TableIdentifier identifier, TableMetadata base) {
    BaseTable table =
        loaded(
            () -> catalog.context().unchecked(identifier),
            catalog.context().fullName(identifier),
            "The table was decrypted by this call, which need not be made again. It is not known"
                + " whether another client committed just before: look at the table's refs.");
    TableMetadata now = table.operations().current();
    if (LoadedMetadata.isSame(now, base) || LoadedMetadata.isOlder(now, base)) {
      return;
    }

    for (Snapshot snapshot : now.snapshots()) {
      if (snapshot.keyId() != null) {
        CatalogContext.settleKeys(table, base); // it may have come after the first time
        throw new IcebergCryptoException(
                String.format(
                    "snapshot %d is encrypted: another client committed it while the table was"
                        + " decrypted",
                    snapshot.snapshotId()),
                "Everything else is plaintext. The table has its key id and keys again, so that"
                    + " nothing is lost. Call decrypt_table again, in a session whose catalog has"
                    + " encryption.plaintext-files=allow.")
            .inTable(table.name());
      }
    }

    requireRefs(
        table,
        base,
        now,
        before ->
            String.format(
                "The table is plaintext, and has all that it showed before. Until"
                    + " remove_orphan_files deletes the encrypted files, the rows of these"
                    + " snapshots are in those that %s names.",
                before.metadataFileLocation()));
  }

  /** The table after the commit, which was made even if it cannot be loaded. */
  private static BaseTable loaded(Supplier<BaseTable> load, String name, String hint) {
    try {
      BaseTable table = load.get();
      table.operations().current(); // is checked then
      return table;
    } catch (IcebergCryptoException e) {
      throw e.withHint(hint);
    } catch (RuntimeException e) {
      CancelledException.rethrow(e);
      throw new IcebergCryptoException(
              "the commit was made, but the table cannot be loaded: " + Causes.innermostMessage(e),
              hint,
              e)
          .inTable(name);
    }
  }

  /**
   * Replaces the metadata of an encrypted table by plaintext metadata. After an exception that is
   * not of an unknown state, the table is still encrypted.
   *
   * @param base the metadata in force
   * @param next made of the base, with its changes: without key id, keys, and the snapshots and
   *     statistics files of the base
   * @throws CommitFailedException when another commit came first; nothing was changed
   * @throws CommitStateUnknownException when nobody knows whether it was made
   * @throws IcebergCryptoException when something of the encrypted table would stay, which nobody
   *     could read then; nothing was changed
   */
  public static void decrypt(
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      TableMetadata base,
      TableMetadata next) {
    boolean isPlain =
        !EncryptionProperties.wasEncrypted(next)
            && next.snapshots().stream().allMatch(snapshot -> snapshot.keyId() == null)
            && next.statisticsFiles().isEmpty()
            && next.partitionStatisticsFiles().isEmpty();
    if (!isPlain) {
      throw new IllegalStateException("Encrypted files would stay in " + identifier);
    }

    // a writer that loaded the table before may still bring files with keys: commits look for them
    TableMetadata marked =
        TableMetadata.buildFrom(next)
            .setProperties(
                Map.of(
                    EncryptionProperties.FORMER_KEY_ID,
                    EncryptionProperties.keyId(base.properties())))
            .build();
    BaseTable table = catalog.context().unchecked(identifier);
    CancelledException.check();
    commit(
        catalog,
        identifier,
        base,
        () -> catalog.context().commitPlaintext(identifier, table, base, marked));
  }

  /**
   * Commits, and where the error leaves it open, looks whether the commit was made. A gateway may
   * answer before the server has made it.
   */
  private static void commit(
      EncryptedCatalog catalog, TableIdentifier identifier, TableMetadata base, Runnable commit) {
    try {
      commit.run();
    } catch (CommitFailedException | CommitStateUnknownException e) {
      throw e;
    } catch (RuntimeException e) {
      TableMetadata now = nowOrNull(catalog, identifier, base);
      boolean isMade = now != null && hasKeyId(now) != hasKeyId(base);
      boolean mayCome =
          !(e instanceof CleanableFailure) && (now == null || e instanceof RESTException);
      throw isMade || mayCome
          ? CommitOutcome.unknown("the catalog failed", e, catalog.context().fullName(identifier))
          : e;
    }
  }

  /** A table's metadata; null when it cannot be loaded, or the table of that name is another. */
  private static TableMetadata nowOrNull(
      EncryptedCatalog catalog, TableIdentifier identifier, TableMetadata base) {
    try {
      TableMetadata now = catalog.context().unchecked(identifier).operations().current();
      return Objects.equals(now.uuid(), base.uuid()) ? now : null;
    } catch (RuntimeException e) {
      return null;
    }
  }

  private static boolean hasKeyId(TableMetadata metadata) {
    return EncryptionProperties.keyId(metadata.properties()) != null;
  }

  static void requireEncrypted(String table, TableMetadata metadata) {
    for (Snapshot snapshot : metadata.snapshots()) {
      if (snapshot.keyId() == null) {
        throw new PlaintextException(
                String.format(
                    "snapshot %d is plaintext: another client committed it while the table was"
                        + " encrypted",
                    snapshot.snapshotId()),
                String.format(
                    "Everything else is encrypted (%s is '%s'). Look at the table's refs, write the"
                        + " rows of that snapshot again, and compare them. Its branch or tag can be"
                        + " dropped, and the snapshot expired, when it is no longer needed.",
                    EncryptionProperties.KEY_ID, EncryptionProperties.keyId(metadata.properties())))
            .inTable(table);
      }
    }
  }

  /**
   * No requirement of a commit covers refs that are new: they go with the snapshots they are on.
   */
  private static void requireRefs(
      BaseTable table,
      TableMetadata base,
      TableMetadata now,
      Function<TableMetadata, String> hint) {
    TableMetadata before = lastBefore(table, base, now);
    List<String> gone =
        before == null
            ? List.of()
            : before.refs().keySet().stream()
                .filter(ref -> base.ref(ref) == null && now.ref(ref) == null)
                .map(ref -> String.format("%s (snapshot %d)", ref, before.ref(ref).snapshotId()))
                .toList();
    if (!gone.isEmpty()) {
      throw new IcebergCryptoException(
              "the commit removed branches and tags that another client created just before: "
                  + String.join(", ", gone),
              hint.apply(before))
          .inTable(table.name());
    }
  }

  /** The last metadata of other clients between base and commit; null: the base, or unreadable. */
  private static TableMetadata lastBefore(BaseTable table, TableMetadata base, TableMetadata now) {
    FileIO io = TableFileIO.storageBelow(table.io());
    try {
      List<String> files =
          now.previousFiles().stream().map(TableMetadata.MetadataLogEntry::file).toList();
      int after = files.indexOf(base.metadataFileLocation()) + 1; // a short log has only newer ones
      return files.stream()
          .skip(after)
          .map(file -> MetadataFile.read(io, file).metadata())
          .takeWhile(metadata -> hasKeyId(metadata) == hasKeyId(base))
          .reduce((one, later) -> later)
          .orElse(null);
    } catch (RuntimeException e) {
      LOG.warn("Table {}: cannot read what other clients have committed", table.name(), e);
      return null;
    }
  }
}
