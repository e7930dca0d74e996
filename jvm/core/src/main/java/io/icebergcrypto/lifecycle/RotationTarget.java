package io.icebergcrypto.lifecycle;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.UncachedKms;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.commit.KeyIdRule;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.CachingKmsClient;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitStateUnknownException;

/**
 * An encrypted table whose keys are to be changed.
 *
 * @param name its full name
 * @param kms the KMS, for its keys
 */
record RotationTarget(String name, TableOperations ops, UncachedKms kms) {
  /**
   * Loads a table, with its metadata checked.
   *
   * @throws NotSupportedException when it is not encrypted, or has no metadata of its own
   */
  static RotationTarget load(EncryptedCatalog catalog, TableIdentifier identifier) {
    Table loaded = catalog.loadTable(identifier);
    if (!(loaded instanceof EncryptedTable table)) {
      throw NotSupportedException.ofMetadataTable(loaded.name());
    }

    return of(catalog, null, table.name(), table.operations());
  }

  /**
   * Loads a table whose KEKs another KMS wrapped than its catalog has now.
   *
   * @param former that KMS
   * @throws NotSupportedException as above
   * @throws TamperedException when neither KMS vouches for metadata that must be authenticated
   */
  static RotationTarget load(
      EncryptedCatalog catalog, TableIdentifier identifier, CachingKmsClient former) {
    BaseTable table = catalog.context().unchecked(identifier);
    String uuid = table.operations().current().uuid();
    UncachedKms both = kms(catalog, former, table.name(), uuid);
    return of(catalog, former, table.name(), catalog.context().operations(table, both));
  }

  private static RotationTarget of(
      EncryptedCatalog catalog, CachingKmsClient former, String name, TableOperations ops) {
    TableMetadata metadata = ops.current();
    if (EncryptionProperties.keyId(metadata.properties()) == null) {
      KeyIdRule.refuseLost(name, metadata, null);
      throw new NotEncryptedException("encrypt_table encrypts it in place.").inTable(name);
    }

    return new RotationTarget(name, ops, kms(catalog, former, name, metadata.uuid()));
  }

  private static UncachedKms kms(
      EncryptedCatalog catalog, CachingKmsClient former, String name, String uuid) {
    CachingKmsClient kms = catalog.context().kms();
    return new UncachedKms(() -> kms, former, name, uuid);
  }

  /** The metadata that was loaded or committed last. */
  TableMetadata current() {
    return ops.current();
  }

  /**
   * Commits a change, and goes again on newer metadata when another commit came in between.
   *
   * @param change makes the metadata to be of that in force; the same instance: nothing is to be
   *     committed
   * @throws CommitStateUnknownException when the table cannot be loaded after it
   */
  void commit(UnaryOperator<TableMetadata> change) {
    AtomicBoolean isChanged = new AtomicBoolean();
    CommitRetry.commit(
        name,
        ops,
        ops.current().properties(),
        metadata -> {
          TableMetadata changed = change.apply(metadata);
          isChanged.set(changed != metadata);
          return changed;
        });
    try {
      ops.refresh();
    } catch (TamperedException | CancelledException e) {
      throw e;
    } catch (RuntimeException e) {
      if (!isChanged.get()) {
        throw e;
      }

      throw new CommitStateUnknownException(
          new IcebergCryptoException(
                  "the commit was made, but the table can no longer be loaded: " + e.getMessage(),
                  "Once it can be loaded, call this again: it does what is left to do.",
                  e)
              .inTable(name));
    }
  }
}
