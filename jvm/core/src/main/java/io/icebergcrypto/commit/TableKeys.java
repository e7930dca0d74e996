package io.icebergcrypto.commit;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.metadata.Kek;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * The encryption manager of one table, kept as long as its table operations are and shared with
 * their temporary ones: keys that another commit brought, or that this one has not committed yet,
 * are known to all of them. It is told each newer metadata, which may have a new data key length.
 */
public final class TableKeys {
  private final String tableName;
  private final EncryptionManagerFactory factory;
  private final Supplier<? extends KeyManagementClient> kms;

  private TableEncryptionManager manager;
  private TableMetadata seen;

  public TableKeys(
      String tableName,
      EncryptionManagerFactory factory,
      Supplier<? extends KeyManagementClient> kms) {
    this.tableName = tableName;
    this.factory = factory;
    this.kms = kms;
  }

  /** The table's full name. */
  public String tableName() {
    return tableName;
  }

  /** Learns the keys of newer metadata, if anybody has used this table's keys yet. */
  public synchronized void learn(TableMetadata metadata) {
    boolean newer = manager != null && metadata != null && metadata != seen;
    if (newer && EncryptionProperties.keyId(metadata.properties()) != null) {
      managerFor(metadata);
    }
  }

  /** Whether anybody has used this table's keys yet. */
  public synchronized boolean areInUse() {
    return manager != null;
  }

  /**
   * The manager of the table, or null when the metadata has no key id.
   *
   * @throws TamperedException when the table had a key id before: this manager or the KEKs in its
   *     metadata tell
   */
  public synchronized TableEncryptionManager managerFor(TableMetadata metadata) {
    Map<String, String> properties = metadata.properties();
    String keyId = EncryptionProperties.keyId(properties);
    if (keyId == null) {
      refuseLostKeyId(tableName, metadata, manager == null ? null : manager.tableKeyId());
      return null;
    }

    if (metadata != seen) {
      int length = EncryptionProperties.dataKeyLength(tableName, properties);
      if (manager != null && manager.tableKeyId().equals(keyId)) {
        manager.learn(metadata.encryptionKeys(), length);
      } else {
        KeyManagementClient bound = new BoundKmsClient(metadata.uuid(), kms.get());
        this.manager = factory.create(tableName, metadata.encryptionKeys(), keyId, length, bound);
      }

      this.seen = metadata;
    }

    return manager;
  }

  /**
   * Refuses metadata without a key id of a table that had one.
   *
   * @param known the key id that it is known to have had, or null
   * @throws TamperedException when it is known, or the KEKs or the snapshot in force tell
   */
  public static void refuseLostKeyId(String tableName, TableMetadata metadata, String known) {
    String lost = known != null ? known : EncryptionProperties.masterKeyId(metadata);
    if (lost != null) {
      throw new TamperedException(
              String.format(
                  "%s is gone from the table's metadata (it was '%s'): a client without"
                      + " encryption, or somebody with access to the metadata, removed it",
                  EncryptionProperties.KEY_ID, lost),
              String.format(
                  "Find out who did. ALTER TABLE %s SET TBLPROPERTIES ('%s'='%s') puts it back;"
                      + " then verify the table. Nothing was read or written.",
                  tableName, EncryptionProperties.KEY_ID, lost))
          .inTable(tableName);
    }

    Snapshot current = metadata.currentSnapshot();
    if (current != null && current.keyId() != null) {
      throw new TamperedException(
              String.format(
                  "%s and the table's keys are gone from its metadata: manifest list %s was written"
                      + " encrypted",
                  EncryptionProperties.KEY_ID, current.manifestListLocation()),
              "A client without encryption, or somebody with access to the metadata, removed them:"
                  + " find out who. Restore the metadata from a backup or an object version."
                  + " Nothing was read or written.")
          .inTable(tableName);
    }
  }

  /**
   * A new table's metadata with a KEK in it, which tells that the table is encrypted even when
   * somebody removes the key id before the first snapshot.
   *
   * @return the same metadata when it has one
   */
  public TableMetadata withKek(TableMetadata metadata) {
    if (EncryptionProperties.masterKeyId(metadata) != null) {
      return metadata;
    }

    String keyId = EncryptionProperties.keyId(metadata.properties());
    return TableMetadata.buildFrom(metadata)
        .addEncryptionKey(Kek.make(tableName, metadata, keyId, kms.get()))
        .build();
  }
}
