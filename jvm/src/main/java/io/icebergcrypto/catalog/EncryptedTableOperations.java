package io.icebergcrypto.catalog;

import io.icebergcrypto.manager.TableEncryptionManager;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.encryption.EncryptingFileIO;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.LocationProvider;

/**
 * A table's operations with encryption added: the delegate keeps the metadata, this gives the
 * FileIO and the encryption manager and checks each commit before the delegate sees it. Metadata is
 * always the delegate's own instance, as some catalogs compare by identity. For a table without a
 * key id all is the delegate's.
 */
final class EncryptedTableOperations implements TableOperations {
  private final TableOperations delegate;
  private final TableKeys keys;
  private final CommitGuard guard;

  EncryptedTableOperations(TableOperations delegate, TableKeys keys, CommitGuard guard) {
    this.delegate = delegate;
    this.keys = keys;
    this.guard = guard;
  }

  /** Whether the table has a key id. */
  boolean encrypted() {
    return EncryptionProperties.keyId(delegate.current().properties()) != null;
  }

  /** The same operations, that read files without a key. */
  EncryptedTableOperations withPlaintextFiles() {
    return new EncryptedTableOperations(delegate, keys, guard.withPlaintextFiles());
  }

  @Override
  public TableMetadata current() {
    return learned(delegate.current());
  }

  @Override
  public TableMetadata refresh() {
    return learned(delegate.refresh());
  }

  @Override
  public void commit(TableMetadata base, TableMetadata metadata) {
    if (base != metadata) {
      guard.check(base, metadata, () -> ioFor(metadata, delegate));
    }

    try {
      delegate.commit(base, metadata);
    } catch (IllegalArgumentException | IllegalStateException e) {
      guard.checkDataKeyLength(base); // Hive uses it itself, in every commit
      throw e;
    }
  }

  @Override
  public FileIO io() {
    return ioFor(delegate.current(), delegate);
  }

  @Override
  public EncryptionManager encryption() {
    return encryptionFor(delegate.current(), delegate);
  }

  @Override
  public String metadataFileLocation(String fileName) {
    return delegate.metadataFileLocation(fileName);
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
    keys.learn(metadata);
    return metadata;
  }

  private FileIO ioFor(TableMetadata metadata, TableOperations plain) {
    TableEncryptionManager manager = metadata == null ? null : keys.managerFor(metadata);
    return manager == null
        ? plain.io()
        : EncryptingFileIO.combine(guard.storage(plain.io()), manager);
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
      return temp.metadataFileLocation(fileName);
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
