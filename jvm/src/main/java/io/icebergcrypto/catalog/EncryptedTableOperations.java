package io.icebergcrypto.catalog;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.manager.KeylessFileIO;
import io.icebergcrypto.manager.TableEncryptionManager;
import io.icebergcrypto.manager.TableFileIO;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * A table's operations with encryption added: the delegate keeps the metadata, this gives the
 * FileIO and the encryption manager, checks each commit before the delegate sees it, and has
 * metadata authenticated where the catalog does not vouch for it. Metadata is always the delegate's
 * own instance, as some catalogs compare by identity. For a table without a key id all is the
 * delegate's.
 */
final class EncryptedTableOperations implements TableOperations {
  private final TableOperations delegate;
  private final TableKeys keys;
  private final CommitGuard guard;
  private final MetadataAuthenticator authenticator;
  private final AllowedKeyIds allowedKeyIds;
  private final boolean plaintextAllowed;
  private boolean failed; // guarded by this

  EncryptedTableOperations(
      TableOperations delegate,
      TableKeys keys,
      CommitGuard guard,
      MetadataAuthenticator authenticator,
      AllowedKeyIds allowedKeyIds,
      boolean plaintextAllowed) {
    this.delegate = delegate;
    this.keys = keys;
    this.guard = guard;
    this.authenticator = authenticator;
    this.allowedKeyIds = allowedKeyIds;
    this.plaintextAllowed = plaintextAllowed;
  }

  /** Whether the table has a key id. */
  boolean encrypted() {
    return EncryptionProperties.keyId(current().properties()) != null;
  }

  /** The same operations, that read files without a key. */
  EncryptedTableOperations withPlaintextFiles() {
    return new EncryptedTableOperations(
        delegate, keys, guard.withPlaintextFiles(), authenticator, allowedKeyIds, plaintextAllowed);
  }

  @Override
  public TableMetadata current() {
    return learned(loaded(delegate::current));
  }

  @Override
  public TableMetadata refresh() {
    return learned(loaded(delegate::refresh));
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
            : StatisticsKeys.complete(
                base == null ? keys.withKek(metadata) : metadata, () -> keys.managerFor(metadata));
    TableMetadata signed = authenticator.sign(base, complete);
    try {
      delegate.commit(base, signed);
    } catch (IllegalArgumentException | IllegalStateException e) {
      guard.checkDataKeyLength(base); // Hive uses it itself, in every commit
      throw e;
    }
  }

  /**
   * Checks the metadata of a table that was registered just now. A Hadoop catalog copies it into a
   * folder and a version of its own: it is signed for that.
   */
  void checkRegistered(String metadataFile) {
    TableMetadata current = delegate.current();
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
   * @throws InvalidConfigurationException when that is not, or no longer, the file in force
   */
  void authenticate(String tableName, String metadataFile) {
    TableMetadata current = delegate.refresh();
    if (!metadataFile.equals(current.metadataFileLocation())) {
      throw new InvalidConfigurationException(
              String.format(
                  "metadata_file is '%s', but its metadata is in '%s'",
                  metadataFile, current.metadataFileLocation()),
              "Look at the file in force, and name that one if it is right.")
          .inTable(tableName);
    }

    TableMetadata restored = current;
    if (EncryptionProperties.keyId(current.properties()) == null) {
      String lost = EncryptionProperties.masterKeyId(current);
      if (lost == null) {
        throw new NotSupportedException(
                String.format("it has no %s and no keys left", EncryptionProperties.KEY_ID),
                "Restore the metadata file from a backup or an object version; or drop the table"
                    + " without PURGE and register its last good metadata file.")
            .inTable(tableName);
      }

      restored =
          TableMetadata.buildFrom(current)
              .setProperties(Map.of(EncryptionProperties.KEY_ID, lost))
              .build();
    }

    allowedKeyIds.check(tableName, restored);
    delegate.commit(current, authenticator.sign(current, restored));
  }

  /** Where the table was in use and cannot be loaded now, what is left to do is to clean up. */
  @Override
  public FileIO io() {
    try {
      return ioFor(existing(), delegate);
    } catch (RuntimeException e) {
      if (keys.areInUse()) {
        return new CleanupFileIO(delegate.io(), e);
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
    return MetadataFolder.above(delegate.metadataFileLocation(fileName));
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

  /**
   * After a refresh that failed, Iceberg's operations hand out what they read as if it were checked
   * (Hive's compare the hash last): it is refreshed until that succeeds.
   */
  private synchronized TableMetadata loaded(Supplier<TableMetadata> load) {
    try {
      TableMetadata metadata =
          MetadataHash.checked(keys.tableName(), failed ? delegate::refresh : load);
      this.failed = false;
      return metadata;
    } catch (RuntimeException e) {
      this.failed = true;
      throw e;
    }
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
      return plain.io();
    }

    FileIO storage = KeylessFileIO.storageBelow(plain.io());
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
      return MetadataFolder.above(temp.metadataFileLocation(fileName));
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
