package io.icebergcrypto.cleanup;

import io.icebergcrypto.metadata.StatisticsPaths;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
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
  private final ManifestLists read = new ManifestLists();

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

  /**
   * The manifests of a metadata's snapshots by path, read with the keys of that metadata. A list is
   * read once.
   */
  Map<String, ManifestFile> manifests(TableMetadata of, Collection<Snapshot> snapshots) {
    List<Snapshot> unread = snapshots.stream().filter(s -> !read.contain(s)).toList();
    if (!unread.isEmpty()) {
      new ManifestReads(ops.temp(of).io(), of.specsById(), executor).forEachList(unread, read::add);
    }

    return read.manifests(snapshots);
  }

  /**
   * Deletes them, unless a file that names others cannot be read, or the catalog returns metadata
   * from before the commit.
   *
   * @param before the metadata from which snapshots were to expire
   * @param base the metadata that the commit was made on, perhaps newer, or the one in force since
   * @param withData whether data and delete files go, too
   */
  void delete(TableMetadata before, TableMetadata base, boolean withData) {
    TableMetadata after = ops.refresh();
    if (after.lastSequenceNumber()
        < Math.max(before.lastSequenceNumber(), base.lastSequenceNumber())) {
      // a snapshot that it lacks may be newer: of a server that lags, say
      throw new IllegalStateException("the catalog returns metadata from before the commit");
    }

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

    Set<String> statistics = ConcurrentHashMap.newKeySet();
    statistics.addAll(StatisticsPaths.of(before));
    statistics.addAll(StatisticsPaths.of(base));
    statistics.removeAll(StatisticsPaths.of(after));
    Set<String> lists = ConcurrentHashMap.newKeySet();
    lists.addAll(lists(expired));
    lists.addAll(lists(since));
    Map<Integer, PartitionSpec> specs = new HashMap<>(before.specsById());
    specs.putAll(base.specsById());
    specs.putAll(after.specsById());
    ManifestReads reachable = new ManifestReads(ops.io(), specs, executor);
    Set<String> data = ConcurrentHashMap.newKeySet();
    if (withData) {
      reachable.forEachContentFile(unreachable.values(), data::add);
    }

    Map<String, Set<String>> unused = new LinkedHashMap<>(); // in the order of their deletion
    unused.put("data", data);
    unused.put("manifest", new ConcurrentHashMap<>(unreachable).keySet());
    unused.put("manifest list", lists);
    unused.put("statistics", statistics);
    Consumer<String> live = path -> unused.values().forEach(paths -> paths.remove(path));
    remaining.keySet().forEach(live);
    lists(after.snapshots()).forEach(live);
    if (!data.isEmpty() || !statistics.isEmpty()) { // an entry of statistics may name any file
      // there is no bound to how many they are: they are not kept
      reachable.forEachContentFile(remaining.values(), live);
    }

    unused.forEach((type, paths) -> deleter.accept(paths, type));
  }

  private static List<String> lists(Collection<Snapshot> snapshots) {
    return snapshots.stream().map(Snapshot::manifestListLocation).toList();
  }

  private static List<Snapshot> expired(TableMetadata from, TableMetadata after) {
    return from.snapshots().stream().filter(s -> after.snapshot(s.snapshotId()) == null).toList();
  }
}
