package io.icebergcrypto.commit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.metadata.LoadedMetadata;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Supplier;
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
  private final Function<String, TableEncryptionManager> newest;

  private TableEncryptionManager manager;
  private String uuid; // the manager's table
  private TableMetadata seen;
  private TableMetadata inForce;

  /** The keys of a table that is not loaded again. */
  public TableKeys(
      String tableName,
      EncryptionManagerFactory factory,
      Supplier<? extends KeyManagementClient> kms) {
    this(tableName, factory, kms, null);
  }

  /**
   * The keys of a table.
   *
   * @param newest loads the table of this UUID again, and gives the manager that it then has; may
   *     be null
   */
  public TableKeys(
      String tableName,
      EncryptionManagerFactory factory,
      Supplier<? extends KeyManagementClient> kms,
      Function<String, TableEncryptionManager> newest) {
    this.tableName = tableName;
    this.factory = factory;
    this.kms = kms;
    this.newest = newest;
  }

  /** The table's full name. */
  public String tableName() {
    return tableName;
  }

  /** Which KMS it is, and where; null when the catalog names none. */
  public String kms() {
    try {
      return kms.get().toString();
    } catch (InvalidConfigurationException e) {
      return null;
    }
  }

  /**
   * Learns the keys of metadata in force, if anyone has used this table's keys yet. It may have
   * another master key than before.
   */
  public synchronized void learn(TableMetadata metadata) {
    boolean newer = manager != null && metadata != null && metadata != inForce;
    String keyId = newer ? EncryptionProperties.keyId(metadata.properties()) : null;
    if (keyId == null) {
      return;
    }

    if (isOfAnotherTable(metadata, keyId)) {
      managerFor(metadata);
      return;
    }

    int length = EncryptionProperties.dataKeyLength(tableName, metadata.properties());
    manager.learnInForce(metadata.encryptionKeys(), keyId, length);
    manager.writesBy(metadata.properties());
    this.inForce = metadata;
    this.seen = metadata;
  }

  /** Metadata from before the table had a key id does not show that one was removed. */
  private void refuseOlder(TableMetadata metadata) {
    if (LoadedMetadata.isOlder(metadata, inForce)) {
      throw new IcebergCryptoException(
              String.format(
                  "the catalog returns older metadata than before, which has no %s: %s, after %s",
                  EncryptionProperties.KEY_ID,
                  metadata.metadataFileLocation(),
                  inForce.metadataFileLocation()),
              "It may come from a cache or a replica that lags behind: load the table again later."
                  + " If it still fails, the table was rolled back: find out who did it. Nothing"
                  + " was read or written.")
          .inTable(tableName);
    }
  }

  /** Whether the table was dropped, and another one made under its name. */
  private boolean isOfAnotherTable(TableMetadata metadata, String keyId) {
    return !manager.tableKeyId().equals(keyId) && !Objects.equals(uuid, metadata.uuid());
  }

  /** Whether anyone has used this table's keys yet. */
  public synchronized boolean areInUse() {
    return manager != null;
  }

  /**
   * The manager of the table, or null when the metadata has no key id. The metadata may be from
   * before a rotation, or uncommitted: it changes no key that is known.
   *
   * @throws TamperedException when the table had a key id before: this manager or the KEKs in its
   *     metadata tell
   */
  public synchronized TableEncryptionManager managerFor(TableMetadata metadata) {
    Map<String, String> properties = metadata.properties();
    String keyId = EncryptionProperties.keyId(properties);
    if (keyId == null) {
      refuseOlder(metadata);
      KeyIdRule.refuseLost(tableName, metadata, manager == null ? null : manager.tableKeyId());
      return null;
    }

    if (metadata != seen) {
      int length = EncryptionProperties.dataKeyLength(tableName, properties);
      if (manager != null && !isOfAnotherTable(metadata, keyId)) {
        manager.learn(metadata.encryptionKeys(), length);
      } else {
        KeyManagementClient bound = new BoundKmsClient(metadata.uuid(), kms.get());
        this.manager = factory.create(tableName, metadata.encryptionKeys(), keyId, length, bound);
        String table = metadata.uuid();
        manager.reloadedBy(newest == null ? null : () -> newest.apply(table));
        this.uuid = table;
      }

      manager.writesBy(properties);
      this.seen = metadata;
    }

    return manager;
  }
}
