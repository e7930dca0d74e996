package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.cleanup.DeleteOnlyFileIO;
import io.icebergcrypto.commit.CommitGuard;
import io.icebergcrypto.commit.CommittedKeys;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.AuthenticatedFolder;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.LoadedMetadata;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Map;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.util.Tasks;

/**
 * A table's operations with encryption added: the delegate keeps the metadata, this gives the
 * FileIO and the encryption manager, checks each commit before the delegate sees it, and has
 * metadata authenticated where the catalog does not vouch for it. Metadata is always the delegate's
 * own instance, as some catalogs compare by identity. For a table without a key id all is the
 * delegate's.
 */
public final class EncryptedTableOperations implements TableOperations {
  private final TableOperations delegate;
  private final TableKeys keys;
  private final CommitGuard guard;
  private final MetadataAuthenticator authenticator;
  private final AllowedKeyIds allowedKeyIds;
  private final boolean plaintextAllowed;
  private final LoadedMetadata loaded;

  EncryptedTableOperations(
      TableOperations delegate,
      TableKeys keys,
      CommitGuard guard,
      MetadataAuthenticator authenticator,
      AllowedKeyIds allowedKeyIds,
      boolean plaintextAllowed) {
    this(
        delegate,
        keys,
        guard,
        authenticator,
        allowedKeyIds,
        plaintextAllowed,
        new LoadedMetadata(delegate, keys.tableName()));
  }

  private EncryptedTableOperations(
      TableOperations delegate,
      TableKeys keys,
      CommitGuard guard,
      MetadataAuthenticator authenticator,
      AllowedKeyIds allowedKeyIds,
      boolean plaintextAllowed,
      LoadedMetadata loaded) {
    this.loaded = loaded;
    this.delegate = delegate;
    this.keys = keys;
    this.guard = guard;
    this.authenticator = authenticator;
    this.allowedKeyIds = allowedKeyIds;
    this.plaintextAllowed = plaintextAllowed;
  }

  /** The metadata that was loaded or committed last, of which nothing is checked. */
  TableMetadata unchecked() {
    return loaded.current();
  }

  /** Whether the table has a key id. */
  boolean encrypted() {
    return EncryptionProperties.keyId(current().properties()) != null;
  }

  /** The same operations, that read files without a key. */
  EncryptedTableOperations withPlaintextFiles() {
    return new EncryptedTableOperations(
        delegate,
        keys,
        guard.withPlaintextFiles(),
        authenticator,
        allowedKeyIds,
        plaintextAllowed,
        loaded);
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

    allowedKeyIds.check(keys.tableName(), metadata);
    authenticator.check(base);
    guard.check(
        base,
        metadata,
        () -> ioFor(metadata, delegate),
        path -> keys.managerFor(metadata).statisticsKey(path) != null);
    TableMetadata complete =
        EncryptionProperties.keyId(metadata.properties()) == null
            ? metadata
            : CommittedKeys.complete(keys.withKek(metadata), () -> keys.managerFor(metadata));
    TableMetadata signed = authenticator.sign(base, complete);
    loaded.current(); // the delegate's commit asks for it, and does not look again
    try {
      delegate.commit(base, signed);
    } catch (IllegalArgumentException | IllegalStateException e) {
      guard.checkDataKeyLength(base); // Hive uses it itself, in every commit
      throw keyRefused(base, signed, e);
    } catch (RESTException | UnsupportedOperationException e) {
      throw keyRefused(base, signed, e);
    }
  }

  /** A server that has taken keys of this table before refuses something else. */
  private RuntimeException keyRefused(
      TableMetadata base, TableMetadata metadata, RuntimeException e) {
    boolean addsFirstKey =
        (base == null || base.encryptionKeys().isEmpty())
            && metadata.changes().stream()
                .anyMatch(MetadataUpdate.AddEncryptionKey.class::isInstance);
    return addsFirstKey && ServerRefusal.is(e, delegate)
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
    Tasks.foreach(this)
        .retry(TableProperties.COMMIT_NUM_RETRIES_DEFAULT)
        .exponentialBackoff(
            TableProperties.COMMIT_MIN_RETRY_WAIT_MS_DEFAULT,
            TableProperties.COMMIT_MAX_RETRY_WAIT_MS_DEFAULT,
            TableProperties.COMMIT_TOTAL_RETRY_TIME_MS_DEFAULT,
            2.0)
        .onlyRetryOn(CommitFailedException.class)
        .run(
            ops -> {
              TableMetadata current = ops.refresh();
              TableMetadata complete = keys.withKek(current);
              if (complete != current) {
                ops.commit(current, complete);
              }
            });
  }

  /**
   * Checks the metadata of a table that was registered just now. A Hadoop catalog copies it into a
   * folder and a version of its own: it is signed for that.
   */
  void checkRegistered(String metadataFile) {
    TableMetadata current = loaded.current();
    allowedKeyIds.check(keys.tableName(), current);
    authenticator.check(current, metadataFile);
    if (EncryptionProperties.keyId(current.properties()) != null
        && !metadataFile.equals(current.metadataFileLocation())) {
      delegate.commit(current, authenticator.sign(current, current));
    }
  }

  /**
   * Signs the metadata in force, which failed its check, as it is.
   *
   * @param metadataFile the file that somebody looked at
   * @param sha256 the SHA-256 of what was in it, in hex; null asks what that is
   * @throws InvalidConfigurationException when that is not, or no longer, the file in force and its
   *     content; nothing was signed
   */
  void authenticate(String tableName, String metadataFile, String sha256) {
    TableMetadata current = loaded.refresh();
    if (!metadataFile.equals(current.metadataFileLocation())) {
      throw new InvalidConfigurationException(
              String.format(
                  "metadata_file is '%s', but its metadata is in '%s'",
                  metadataFile, current.metadataFileLocation()),
              "Look at the file in force, and name that one if it is right.")
          .inTable(tableName);
    }

    MetadataFile file = MetadataFile.read(delegate.io(), metadataFile);
    if (sha256 == null || !file.sha256().equalsIgnoreCase(sha256.trim())) {
      throw otherContent(tableName, file, sha256);
    }

    if (!authenticator.isOf(file, current)) {
      throw new InvalidConfigurationException(
              String.format("%s was exchanged while it was read: nothing was signed", metadataFile),
              "Somebody writes to that file: find out who, and look at it again.")
          .inTable(tableName);
    }

    TableMetadata restored = restored(tableName, file.metadata());
    allowedKeyIds.check(tableName, restored);
    delegate.commit(current, authenticator.sign(current, restored));
  }

  private static IcebergCryptoException otherContent(
      String tableName, MetadataFile file, String sha256) {
    return new InvalidConfigurationException(
            sha256 == null
                ? String.format(
                    "nothing was signed: metadata_sha256 is missing, and %s could be another file"
                        + " by now than the one that was looked at",
                    file.location())
                : String.format(
                    "nothing was signed: %s is not the file that was looked at; its SHA-256 is %s,"
                        + " and metadata_sha256 is %s",
                    file.location(), file.sha256(), sha256),
            String.format(
                "Get a copy of the file, look at the copy, and take its sha256sum. If it is right,"
                    + " and its hash is this one: %s.",
                MetadataAuthenticator.callToSign(tableName, file.location(), file.sha256())))
        .inTable(tableName);
  }

  /** Metadata with the key id that somebody removed. */
  private static TableMetadata restored(String tableName, TableMetadata found) {
    if (EncryptionProperties.keyId(found.properties()) != null) {
      return found;
    }

    String lost = EncryptionProperties.masterKeyId(found);
    if (lost == null) {
      throw new NotSupportedException(
              String.format("it has no %s and no keys left", EncryptionProperties.KEY_ID),
              "Restore the metadata file from a backup or an object version; or drop the table"
                  + " without PURGE and register its last good metadata file.")
          .inTable(tableName);
    }

    return TableMetadata.buildFrom(found)
        .setProperties(Map.of(EncryptionProperties.KEY_ID, lost))
        .build();
  }

  /** Whether the metadata in force is authenticated. */
  MetadataAuthentication metadataAuthentication() {
    return authenticator.status(current());
  }

  /** Where the table was in use and cannot be loaded now, what is left to do is to clean up. */
  @Override
  public FileIO io() {
    try {
      return ioFor(existing(), delegate);
    } catch (RuntimeException e) {
      if (keys.areInUse()) {
        return new DeleteOnlyFileIO(FailFastFileIO.below(delegate.io()), e);
      }

      throw e;
    }
  }

  @Override
  public EncryptionManager encryption() {
    return encryptionFor(existing(), delegate);
  }

  /** The metadata in force; null for a table that is yet to be, not for one that was dropped. */
  private TableMetadata existing() {
    TableMetadata metadata = current();
    if (metadata == null && keys.areInUse()) {
      throw new NoSuchTableException("Table does not exist: %s", keys.tableName());
    }

    return metadata;
  }

  @Override
  public String metadataFileLocation(String fileName) {
    return AuthenticatedFolder.above(delegate.metadataFileLocation(fileName));
  }

  @Override
  public LocationProvider locationProvider() {
    return delegate.locationProvider();
  }

  @Override
  public TableOperations temp(TableMetadata uncommitted) {
    return new Uncommitted(delegate.temp(uncommitted), uncommitted);
  }

  @Override
  public long newSnapshotId() {
    return delegate.newSnapshotId();
  }

  @Override
  public boolean requireStrictCleanup() {
    return delegate.requireStrictCleanup();
  }

  private TableMetadata learned(TableMetadata metadata) {
    allowedKeyIds.check(keys.tableName(), metadata);
    authenticator.check(metadata);
    keys.learn(metadata);
    if (!plaintextAllowed
        && metadata != null
        && EncryptionProperties.keyId(metadata.properties()) == null) {
      throw new PlaintextException(
              String.format(
                  "it has no %s, and the catalog has %s=refuse",
                  EncryptionProperties.KEY_ID, EncryptionProperties.PLAINTEXT_TABLES),
              "If it was encrypted, somebody replaced its metadata: find out who, and restore it."
                  + " If it never was, use it in a catalog without that property.")
          .inTable(keys.tableName());
    }

    return metadata;
  }

  private FileIO ioFor(TableMetadata metadata, TableOperations plain) {
    TableEncryptionManager manager = metadata == null ? null : keys.managerFor(metadata);
    if (manager == null) {
      return FailFastFileIO.below(plain.io());
    }

    FileIO storage = TableFileIO.storageBelow(FailFastFileIO.below(plain.io()));
    return TableFileIO.combine(storage, guard.guarded(storage, manager), manager);
  }

  private EncryptionManager encryptionFor(TableMetadata metadata, TableOperations plain) {
    TableEncryptionManager manager = metadata == null ? null : keys.managerFor(metadata);
    return manager == null ? plain.encryption() : manager;
  }

  /**
   * The operations of a transaction's uncommitted metadata. In a create transaction only they know
   * the key id. Keys are shared: after a conflict a transaction is applied again on these same
   * operations although the other commit's keys are new.
   */
  private final class Uncommitted implements TableOperations {
    private final TableOperations temp;
    private final TableMetadata uncommitted;

    private Uncommitted(TableOperations temp, TableMetadata uncommitted) {
      this.temp = temp;
      this.uncommitted = uncommitted;
    }

    @Override
    public TableMetadata current() {
      return temp.current();
    }

    @Override
    public TableMetadata refresh() {
      return temp.refresh();
    }

    @Override
    public void commit(TableMetadata base, TableMetadata metadata) {
      temp.commit(base, metadata);
    }

    @Override
    public FileIO io() {
      return ioFor(uncommitted, temp);
    }

    @Override
    public EncryptionManager encryption() {
      return encryptionFor(uncommitted, temp);
    }

    @Override
    public String metadataFileLocation(String fileName) {
      return AuthenticatedFolder.above(temp.metadataFileLocation(fileName));
    }

    @Override
    public LocationProvider locationProvider() {
      return temp.locationProvider();
    }

    @Override
    public long newSnapshotId() {
      return temp.newSnapshotId();
    }

    @Override
    public boolean requireStrictCleanup() {
      return temp.requireStrictCleanup();
    }
  }
}
