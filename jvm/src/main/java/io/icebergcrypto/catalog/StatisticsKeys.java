package io.icebergcrypto.catalog;

import io.icebergcrypto.manager.TableEncryptionManager;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/** The keys of statistics files in table metadata, which Iceberg's updates know nothing of. */
final class StatisticsKeys {
  private StatisticsKeys() {}

  /** The statistics files of a table, those of partitions included. */
  static Set<String> paths(TableMetadata metadata) {
    return Stream.concat(
            metadata.statisticsFiles().stream().map(StatisticsFile::path),
            metadata.partitionStatisticsFiles().stream().map(PartitionStatisticsFile::path))
        .collect(Collectors.toSet());
  }

  /**
   * Adds the keys of statistics files to metadata that is about to be committed, and removes those
   * of files that it no longer has.
   *
   * @param manager the table's; asked for only when there is something to do
   * @return the same metadata when it is complete
   */
  static TableMetadata complete(TableMetadata metadata, Supplier<TableEncryptionManager> manager) {
    Set<String> paths = paths(metadata);
    List<EncryptedKey> entries =
        metadata.encryptionKeys().stream()
            .filter(key -> TableEncryptionManager.statisticsPath(key) != null)
            .toList();
    if (paths.isEmpty() && entries.isEmpty()) {
      return metadata;
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    for (String path : paths) {
      EncryptedKey key = manager.get().statisticsKey(path);
      if (key != null) {
        builder.addEncryptionKey(manager.get().key(key.encryptedById()));
        builder.addEncryptionKey(key);
      }
    }

    for (EncryptedKey key : entries) {
      String path = TableEncryptionManager.statisticsPath(key);
      if (!paths.contains(path) || replaced(key, manager.get().statisticsKey(path))) {
        builder.removeEncryptionKey(key.keyId());
      }
    }

    return builder.build();
  }

  /** Whether a file was written again, under another key. */
  private static boolean replaced(EncryptedKey key, EncryptedKey last) {
    return last != null && !last.keyId().equals(key.keyId());
  }
}
