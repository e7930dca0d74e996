package io.icebergcrypto.cleanup;

import io.icebergcrypto.metadata.StatisticsPaths;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.function.BiConsumer;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;

/** The files that expired snapshots reach and no remaining one does. */
final class ExpiredFiles {
  private final TableOperations ops;
  private final ExecutorService executor;
  private final BiConsumer<Collection<String>, String> deleter;

  /**
   * Says how files are read and deleted.
   *
   * @param executor reads files side by side
   * @param deleter deletes files, given by path, of a type that is for the log
   */
  ExpiredFiles(
      TableOperations ops,
      ExecutorService executor,
      BiConsumer<Collection<String>, String> deleter) {
    this.ops = ops;
    this.executor = executor;
    this.deleter = deleter;
  }

  /** The manifests of a metadata's snapshots by path, read with the keys of that metadata. */
  Map<String, ManifestFile> manifests(TableMetadata of, Collection<Snapshot> snapshots) {
    return new ReachableFiles(ops.temp(of).io(), of.specsById(), executor).manifests(snapshots);
  }

  /**
   * Deletes them, unless a file that names others cannot be read.
   *
   * @param before the metadata from which snapshots were to expire
   * @param base the metadata that the commit was made on, perhaps newer, or the one in force since
   * @param withData whether data and delete files go, too
   */
  void delete(TableMetadata before, TableMetadata base, boolean withData) {
    TableMetadata after = ops.refresh();
    List<Snapshot> expired = expired(before, after);
    List<Snapshot> since =
        expired(base, after).stream().filter(s -> before.snapshot(s.snapshotId()) == null).toList();
    if (expired.isEmpty() && since.isEmpty()) {
      return;
    }

    Map<String, ManifestFile> remaining = manifests(after, after.snapshots());
    Map<String, ManifestFile> unreachable = manifests(before, expired);
    unreachable.putAll(manifests(base, since));
    unreachable.keySet().removeAll(remaining.keySet());

    Set<String> statistics = new HashSet<>(StatisticsPaths.of(before));
    statistics.addAll(StatisticsPaths.of(base));
    statistics.removeAll(StatisticsPaths.of(after));
    Map<Integer, PartitionSpec> specs = new HashMap<>(before.specsById());
    specs.putAll(base.specsById());
    specs.putAll(after.specsById());
    ReachableFiles reachable = new ReachableFiles(ops.io(), specs, executor);
    boolean data = withData && !unreachable.isEmpty();
    Set<String> live = new HashSet<>(remaining.keySet());
    live.addAll(lists(after.snapshots()));
    if (data || !statistics.isEmpty()) { // an entry of statistics may name any file
      live.addAll(reachable.contentFiles(remaining.values()));
    }

    if (data) {
      deleteBut(live, reachable.contentFiles(unreachable.values()), "data");
    }

    deleteBut(live, unreachable.keySet(), "manifest");
    deleteBut(live, lists(expired), "manifest list");
    deleteBut(live, lists(since), "manifest list");
    deleteBut(live, statistics, "statistics");
  }

  private void deleteBut(Set<String> live, Collection<String> paths, String type) {
    deleter.accept(paths.stream().filter(path -> !live.contains(path)).toList(), type);
  }

  private static List<String> lists(Collection<Snapshot> snapshots) {
    return snapshots.stream().map(Snapshot::manifestListLocation).toList();
  }

  private static List<Snapshot> expired(TableMetadata from, TableMetadata after) {
    return from.snapshots().stream().filter(s -> after.snapshot(s.snapshotId()) == null).toList();
  }
}
