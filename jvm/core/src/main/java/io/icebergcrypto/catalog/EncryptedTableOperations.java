package io.icebergcrypto.catalog;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.catalog.behind.ServerRefusal;
import io.icebergcrypto.cleanup.DeleteOnlyFileIO;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.commit.CommitSteps;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.AuthenticatedFolder;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.LoadedMetadata;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.util.Collection;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.io.FileIO;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A table's operations with encryption added: the delegate keeps the metadata, this gives the
 * FileIO and the encryption manager, checks each commit before the delegate sees it, and has
 * metadata authenticated where the catalog does not vouch for it. Metadata is always the delegate's
 * own instance, as some catalogs compare by identity. For a table without a key id all is the
 * delegate's.
 */
final class EncryptedTableOperations implements ForwardingOperations {
  private static final Logger LOG = LoggerFactory.getLogger(EncryptedTableOperations.class);

  private final TableOperations delegate;
  private final BiConsumer<TableMetadata, CommitSteps.Prepared> committer;
  private final TableKeys keys;
  private final CommitSteps steps;
  private final Collection<EncryptedKey> forAudit; // of older metadata; null: it is no audit
  private final LoadSteps load;
  private final LoadedMetadata loaded;
  private volatile Opened opened;
  private volatile boolean committed;
  private volatile TableMetadata checked; // Iceberg asks for it in loops

  /** The table's FileIO, and what it was made of. */
  private record Opened(FileIO plain, TableEncryptionManager manager, FileIO io) {}

  /**
   * Decorates the operations of a table.
   *
   * @param delegate the table's operations in the catalog behind
   * @param behind that catalog
   * @param kms the catalog's KMS client
   * @param verified whether commits add only files that their caller has verified
   */
  EncryptedTableOperations(
      TableOperations delegate,
      TableKeys keys,
      MetadataAuthenticator authenticator,
      CatalogSettings settings,
      CatalogBehind behind,
      Supplier<? extends KeyManagementClient> kms,
      boolean verified) {
    this(
        delegate,
        (base, next) ->
            behind.commit(keys.tableName(), delegate, base, next.metadata(), next.changes(), kms),
        keys,
        new CommitSteps(keys, settings, authenticator, kms, behind.isRest(), verified),
        null,
        new LoadSteps(keys.tableName(), settings, authenticator),
        new LoadedMetadata(delegate, keys.tableName()));
  }

  private EncryptedTableOperations(
      TableOperations delegate,
      BiConsumer<TableMetadata, CommitSteps.Prepared> committer,
      TableKeys keys,
      CommitSteps steps,
      Collection<EncryptedKey> forAudit,
      LoadSteps load,
      LoadedMetadata loaded) {
    this.delegate = delegate;
    this.committer = committer;
    this.keys = keys;
    this.steps = steps;
    this.forAudit = forAudit;
    this.load = load;
    this.loaded = loaded;
  }

  @Override
  public TableOperations below() {
    return delegate;
  }

  /** The metadata that was loaded or committed last, of which nothing is checked. */
  TableMetadata unchecked() {
    return loaded.current();
  }

  /** Whether the table has a key id. */
  boolean encrypted() {
    return EncryptionProperties.keyId(required().properties()) != null;
  }

  /** Which KMS the catalog has, and where it is; null if it has none. */
  String kms() {
    return keys.kms();
  }

  /** Whether the catalog accepts encrypted files whose length nothing gives. */
  boolean acceptsFilesWithoutLength() {
    return load.settings().filesWithoutLength();
  }

  /** Begins to unwrap what a scan of the table as it is needs, without waiting for it. */
  void unwrapAhead() {
    TableMetadata current = required();
    Snapshot snapshot = current.currentSnapshot();
    TableEncryptionManager manager = snapshot == null ? null : keys.managerFor(current);
    if (manager != null) {
      manager.unwrapAhead(snapshot.keyId());
    }
  }

  /** The same operations, for an audit: they read files without a key, and with older keys. */
  EncryptedTableOperations forAudit(Collection<EncryptedKey> olderKeys) {
    return new EncryptedTableOperations(delegate, committer, keys, steps, olderKeys, load, loaded);
  }

  /** The same operations, with metadata checked by another authenticator than signs it. */
  EncryptedTableOperations checkedBy(MetadataAuthenticator other) {
    LoadSteps checks = new LoadSteps(keys.tableName(), load.settings(), other);
    return new EncryptedTableOperations(delegate, committer, keys, steps, forAudit, checks, loaded);
  }

  @Override
  public TableMetadata current() {
    return learned(loaded.current());
  }

  @Override
  public TableMetadata refresh() {
    return learned(loaded.refresh());
  }

  @Override
  public void commit(TableMetadata base, TableMetadata metadata) {
    if (base == metadata) {
      delegate.commit(base, metadata);
      return;
    }

    load.authenticator().check(base);
    CommitSteps.Prepared prepared = prepared(base, metadata);
    loaded.current(); // the delegate's commit asks for it, and does not look again
    commit(base, prepared, committer);
  }

  /** Has the catalog behind commit what the steps of a commit made. */
  private void commit(
      TableMetadata base,
      CommitSteps.Prepared prepared,
      BiConsumer<TableMetadata, CommitSteps.Prepared> behind) {
    TableMetadata before = base == null ? null : delegate.current();
    try {
      behind.accept(base, prepared);
    } catch (RuntimeException e) {
      throw keyRefused(base, prepared.metadata(), e);
    }

    this.committed = true;
    ServerRefusal.checkKept(
        delegate, before, prepared.metadata(), keys.tableName(), loaded::refresh);
    restoreKeyId(before);
  }

  private void restoreKeyId(TableMetadata before) {
    try {
      TableMetadata restored = steps.withRotatedKeyId(before, delegate::current);
      if (restored != null) {
        delegate.commit(delegate.current(), restored);
      }
    } catch (RuntimeException e) { // the commit before it is done
      LOG.warn(
          "{} may have been replaced while its master key was rotated, and have the earlier {}"
              + " again: look at encryption_keys",
          keys.tableName(),
          EncryptionProperties.KEY_ID,
          e);
    }
  }

  /**
   * Commits a change to a table that may be in a state in which it is refused otherwise.
   *
   * @param change makes the metadata to be of that in force
   * @param commit has the catalog behind commit, from the base to what the steps of a commit made
   */
  void repair(
      UnaryOperator<TableMetadata> change, BiConsumer<TableMetadata, CommitSteps.Prepared> commit) {
    TableMetadata base = loaded.refresh();
    load.authenticator().check(base);
    CommitSteps.Prepared prepared = prepared(base, change.apply(base));
    if (prepared.metadata() != base) {
      commit(base, prepared, commit);
    }
  }

  /** See {@link CatalogContext#commitPlaintext}. */
  void commitPlaintext(TableMetadata base, TableMetadata plaintext) {
    TableMetadata current = required();
    if (!LoadedMetadata.isSame(current, base)) {
      throw new CommitFailedException(
          "Cannot commit: the metadata of %s is %s now, not %s",
          keys.tableName(), current.metadataFileLocation(), base.metadataFileLocation());
    }

    commit(current, new CommitSteps.Prepared(plaintext, plaintext.changes()), committer);
  }

  /** What the catalog behind is to commit: see {@link CommitSteps}. */
  private CommitSteps.Prepared prepared(TableMetadata base, TableMetadata metadata) {
    return steps.prepare(base, metadata, manager -> open(delegate, manager));
  }

  /** A server that has taken keys of this table before refuses something else. */
  private RuntimeException keyRefused(
      TableMetadata base, TableMetadata metadata, RuntimeException e) {
    boolean addsFirstKey =
        (base == null || base.encryptionKeys().isEmpty())
            && metadata.changes().stream()
                .anyMatch(MetadataUpdate.AddEncryptionKey.class::isInstance);
    boolean isGone = base != null && e instanceof NoSuchTableException;
    return addsFirstKey && !isGone && ServerRefusal.is(e, delegate)
        ? ServerRefusal.ofKeys(e).inTable(keys.tableName())
        : e;
  }

  /**
   * Adds its first KEK to an encrypted table that the catalog behind made without one.
   *
   * @throws CommitStateUnknownException when nobody knows whether it is there
   * @throws NotSupportedException when the server does not take keys
   */
  void addFirstKek() {
    CommitRetry.commit(keys.tableName(), this, Map.of(), steps::withFirstKek);
  }

  /**
   * Checks the metadata of a table that was registered just now. A Hadoop catalog copies it into a
   * folder and a version of its own: it is signed for that.
   */
  void checkRegistered(String metadataFile) {
    TableMetadata current = loaded.current();
    load.checkRegistered(current, metadataFile);
    if (EncryptionProperties.keyId(current.properties()) != null
        && !metadataFile.equals(current.metadataFileLocation())) {
      commit(current, prepared(current, current), committer);
    }
  }

  /**
   * Signs the metadata in force, which failed its check, as it is: see {@link MetadataApproval}.
   *
   * @param metadataFile the file that was reviewed
   * @param sha256 the SHA-256 of what was in it, in hex; null asks what that is
   */
  void authenticate(String metadataFile, String sha256) {
    TableMetadata current = loaded.refresh();
    TableMetadata approved =
        new MetadataApproval(keys.tableName(), delegate.io(), load.authenticator())
            .approved(current, metadataFile, sha256);
    commit(current, prepared(current, approved), committer);
  }

  /** Whether metadata of this table is authenticated. */
  MetadataAuthentication metadataAuthentication(TableMetadata metadata) {
    return load.authenticator().status(metadata);
  }

  /**
   * Where the table was in use, or committed, and cannot be loaded now, what is left to do is to
   * clean up.
   */
  @Override
  public FileIO io() {
    try {
      return opened(existing());
    } catch (RuntimeException e) {
      if (keys.areInUse() || committed) {
        return DeleteOnlyFileIO.of(FailFastFileIO.below(delegate.io()), e);
      }

      throw e;
    }
  }

  /** The same FileIO as long as it can be: Iceberg's cache of manifests is a FileIO's own. */
  private FileIO opened(TableMetadata metadata) {
    TableEncryptionManager manager = managerFor(metadata);
    FileIO plain = delegate.io();
    Opened last = opened;
    if (last == null || last.plain != plain || last.manager != manager || forAudit != null) {
      last = new Opened(plain, manager, open(delegate, manager));
      this.opened = last;
    }

    return last.io;
  }

  @Override
  public EncryptionManager encryption() {
    return encryptionFor(existing(), delegate);
  }

  /** The metadata in force; null for a table that is yet to be, not for one that was dropped. */
  private TableMetadata existing() {
    return keys.areInUse() ? required() : current();
  }

  /** The metadata in force of a table that was loaded. */
  TableMetadata required() {
    return LoadedMetadata.existing(keys.tableName(), current());
  }

  @Override
  public String metadataFileLocation(String fileName) {
    return place(delegate.metadataFileLocation(fileName), this::unchecked);
  }

  /** The place of a manifest or list, which is not in the folder of authenticated metadata. */
  private String place(String file, Supplier<TableMetadata> metadata) {
    return AuthenticatedFolder.uuid(file) == null
        ? file
        : AuthenticatedFolder.above(unchecked(), metadata.get(), file);
  }

  @Override
  public TableOperations temp(TableMetadata uncommitted) {
    return new Uncommitted(delegate.temp(uncommitted), uncommitted);
  }

  private TableMetadata learned(TableMetadata metadata) {
    if (metadata != checked) {
      load.check(metadata);
      this.checked = metadata;
    }

    keys.learn(metadata);
    return metadata;
  }

  /** The FileIO of a manager; null: of a table that is not encrypted. */
  private FileIO open(TableOperations plain, TableEncryptionManager manager) {
    FileIO io = FailFastFileIO.below(plain.io());
    if (manager == null) {
      return io;
    }

    FileIO storage = TableFileIO.storageBelow(io);
    CatalogSettings settings = load.settings();
    return forAudit == null
        ? TableFileIO.guarded(storage, manager, settings)
        : TableFileIO.unguarded(storage, manager.forAudit(forAudit, settings.allowedKeyIds()));
  }

  private TableEncryptionManager managerFor(TableMetadata metadata) {
    return metadata == null ? null : keys.managerFor(metadata);
  }

  private EncryptionManager encryptionFor(TableMetadata metadata, TableOperations plain) {
    TableEncryptionManager manager = managerFor(metadata);
    return manager == null ? plain.encryption() : manager;
  }

  /**
   * The operations of a transaction's uncommitted metadata. In a create transaction only they know
   * the key id. Keys are shared: after a conflict a transaction is applied again on these same
   * operations although the other commit's keys are new.
   */
  private final class Uncommitted implements ForwardingOperations {
    private final TableOperations temp;
    private final TableMetadata uncommitted;

    private Uncommitted(TableOperations temp, TableMetadata uncommitted) {
      this.temp = temp;
      this.uncommitted = uncommitted;
    }

    @Override
    public TableOperations below() {
      return temp;
    }

    @Override
    public FileIO io() {
      return open(temp, managerFor(uncommitted));
    }

    @Override
    public EncryptionManager encryption() {
      return encryptionFor(uncommitted, temp);
    }

    @Override
    public String metadataFileLocation(String fileName) {
      return place(temp.metadataFileLocation(fileName), () -> uncommitted);
    }
  }
}
