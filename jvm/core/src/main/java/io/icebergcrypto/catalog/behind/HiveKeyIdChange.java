package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.config.EncryptionProperties;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.hive.HiveTableOperations;
import org.apache.iceberg.io.FileIO;
import org.apache.thrift.TException;

/**
 * One commit to a Hive metastore that changes a table's key id. Iceberg's operations refuse it, as
 * nothing in Iceberg rewraps a table's KEKs. The commit itself is theirs: the lock, the check that
 * no other commit came first, the table's parameters, the hash of its metadata. They are told that
 * the base has the new key id already, which they compare; the metastore still has the old.
 *
 * <p>Iceberg 1.11 adds all keys again that a table's operations have loaded. These have loaded
 * none, so that a commit by them also removes keys.
 *
 * <p>These operations take the data key length from the metadata to be. The table's have it from
 * the metastore, and can commit nothing if a client has set one there that no key can have.
 */
final class HiveKeyIdChange extends HiveTableOperations {
  private final HiveTableOperations table;
  private final boolean isDecrypted;

  private HiveKeyIdChange(
      HiveCatalog catalog,
      HiveTableOperations table,
      FileIO io,
      KeyManagementClient kms,
      TableMetadata metadata) {
    super(
        catalog.getConf(),
        table.metaClients(),
        io,
        kms,
        catalog.name(),
        table.database(),
        table.table());
    this.table = table;
    this.isDecrypted = EncryptionProperties.keyId(metadata.properties()) == null;
  }

  /**
   * Commits metadata with another key id or none, fewer keys, or another data key length, than its
   * base.
   *
   * @param table the table's operations
   * @param io reads and writes the table's metadata files
   * @param kms not asked: all KEKs are in the metadata
   * @throws CommitFailedException when the base is no longer in force
   */
  static void commit(
      HiveCatalog catalog,
      HiveTableOperations table,
      FileIO io,
      KeyManagementClient kms,
      TableMetadata base,
      TableMetadata metadata) {
    HiveKeyIdChange change = new HiveKeyIdChange(catalog, table, io, kms, metadata);
    change.doCommit(withKeyIdOf(metadata, base), metadata);
    CatalogUtil.deleteRemovedMetadataFiles(io, base, metadata);
  }

  private static TableMetadata withKeyIdOf(TableMetadata metadata, TableMetadata base) {
    String keyId = EncryptionProperties.keyId(metadata.properties());
    TableMetadata.Builder builder =
        TableMetadata.buildFrom(base).upgradeFormatVersion(metadata.formatVersion());
    if (keyId == null) {
      builder.removeProperties(Set.of(EncryptionProperties.KEY_ID));
    } else {
      builder.setProperties(Map.of(EncryptionProperties.KEY_ID, keyId));
    }

    return builder.discardChanges().withMetadataLocation(base.metadataFileLocation()).build();
  }

  /** Iceberg's operations leave the key id there when they are told that the base has none. */
  @Override
  public void persistTable(Table inMetastore, boolean exists, String expectedLocation)
      throws TException, InterruptedException {
    if (isDecrypted) {
      inMetastore.getParameters().remove(EncryptionProperties.KEY_ID);
      inMetastore.getParameters().remove(METADATA_HASH_PROP);
    }

    super.persistTable(inMetastore, exists, expectedLocation);
  }

  /** Of the table: these operations have not loaded it. */
  @Override
  public String currentMetadataLocation() {
    return table.currentMetadataLocation();
  }

  @Override
  public int currentVersion() {
    return table.currentVersion();
  }
}
