package io.icebergcrypto.metadata;

import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.TableMetadata;

/** The paths of a table's statistics files, by which their keys are found. */
public final class StatisticsPaths {
  private StatisticsPaths() {}

  /** The statistics files of a table, those of partitions last. */
  public static Set<String> of(TableMetadata metadata) {
    return Stream.concat(
            metadata.statisticsFiles().stream().map(StatisticsFile::path),
            metadata.partitionStatisticsFiles().stream().map(PartitionStatisticsFile::path))
        .collect(Collectors.toCollection(LinkedHashSet::new));
  }

  /** Those that a commit adds. */
  public static Set<String> added(TableMetadata metadata) {
    Set<String> added = new HashSet<>();
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.SetStatistics set) {
        added.add(set.statisticsFile().path());
      } else if (change instanceof MetadataUpdate.SetPartitionStatistics set) {
        added.add(set.partitionStatisticsFile().path());
      }
    }

    return added;
  }
}
