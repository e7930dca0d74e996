package io.icebergcrypto.audit;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;

/**
 * A file that a table reaches.
 *
 * @param kind what it is to the table
 * @param path its location
 * @param format its format as the table's metadata says: parquet, avro, puffin
 * @param length its length in bytes as the table's metadata says; -1 when it does not say
 */
public record ReachableFile(FileKind kind, String path, String format, long length) {
  /**
   * The files that table metadata itself names: manifest lists and statistics. There are about as
   * many as snapshots; what lies below is left to an engine.
   *
   * @param allSnapshots false: the current snapshot only
   */
  public static List<ReachableFile> namedByMetadata(Table table, boolean allSnapshots) {
    List<ReachableFile> files = new ArrayList<>();
    List<Snapshot> snapshots = new ArrayList<>();
    if (allSnapshots) {
      table.snapshots().forEach(snapshots::add);
    } else if (table.currentSnapshot() != null) {
      snapshots.add(table.currentSnapshot());
    }

    for (Snapshot snapshot : snapshots) {
      files.add(
          new ReachableFile(FileKind.MANIFEST_LIST, snapshot.manifestListLocation(), "avro", -1L));
    }

    Set<Long> ids =
        snapshots.stream().map(Snapshot::snapshotId).collect(Collectors.toUnmodifiableSet());
    for (StatisticsFile file : table.statisticsFiles()) {
      if (ids.contains(file.snapshotId())) {
        files.add(
            new ReachableFile(FileKind.STATISTICS, file.path(), "puffin", file.fileSizeInBytes()));
      }
    }

    for (PartitionStatisticsFile file : table.partitionStatisticsFiles()) {
      if (ids.contains(file.snapshotId())) {
        files.add(
            new ReachableFile(
                FileKind.PARTITION_STATISTICS, file.path(), "parquet", file.fileSizeInBytes()));
      }
    }

    return files;
  }
}
