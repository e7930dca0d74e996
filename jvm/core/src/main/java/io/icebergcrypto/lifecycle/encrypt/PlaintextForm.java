package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.AuthenticatedFolder;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * What becomes of an encrypted table's metadata when it is decrypted: all but keys and snapshots.
 */
public final class PlaintextForm {
  private PlaintextForm() {}

  /**
   * The metadata of the same table, plaintext and without a snapshot. Its changes are those of the
   * base.
   */
  public static TableMetadata of(TableMetadata base) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(base);
    WritableSpec.ensure(base, builder);
    builder.removeSnapshots(base.snapshots().stream().map(Snapshot::snapshotId).toList());
    base.statisticsFiles().forEach(file -> builder.removeStatistics(file.snapshotId()));
    base.partitionStatisticsFiles()
        .forEach(file -> builder.removePartitionStatistics(file.snapshotId()));
    base.encryptionKeys().stream().map(EncryptedKey::keyId).forEach(builder::removeEncryptionKey);
    Set<String> gone = EncryptionProperties.ofEncryptedTables().collect(Collectors.toSet());
    String path = AuthenticatedFolder.pathWithout(base);
    if (path == null) {
      gone.add(TableProperties.WRITE_METADATA_LOCATION);
    } else {
      builder.setProperties(Map.of(TableProperties.WRITE_METADATA_LOCATION, path));
    }

    gone.retainAll(base.properties().keySet());
    return builder.removeProperties(gone).build();
  }
}
