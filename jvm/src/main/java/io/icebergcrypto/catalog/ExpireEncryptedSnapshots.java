package io.icebergcrypto.catalog;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.Tasks;
import org.apache.iceberg.util.ThreadPools;

/**
 * Expires snapshots and deletes their files. Iceberg's own clean-up opens manifest lists and manifests
 * without decrypting them and so deletes nothing of an encrypted table; here Iceberg expires and this
 * class cleans up: what an expired snapshot reaches and no remaining one does. When any file cannot be
 * read nothing is deleted.
 */
final class ExpireEncryptedSnapshots implements ExpireSnapshots {
  private final ExpireSnapshots expire;
  private final TableOperations ops;
  private Consumer<String> deleteFunc;
  private ExecutorService deleteExecutor;
  private ExecutorService planExecutor = ThreadPools.getWorkerPool();
  private CleanupLevel level = CleanupLevel.ALL;

  ExpireEncryptedSnapshots(ExpireSnapshots expire, TableOperations ops) {
    this.expire = expire;
    this.ops = ops;
  }

  @Override
  public ExpireSnapshots expireSnapshotId(long snapshotId) {
    expire.expireSnapshotId(snapshotId);
    return this;
  }

  @Override
  public ExpireSnapshots expireOlderThan(long timestampMillis) {
    expire.expireOlderThan(timestampMillis);
    return this;
  }

  @Override
  public ExpireSnapshots retainLast(int numSnapshots) {
    expire.retainLast(numSnapshots);
    return this;
  }

  @Override
  public ExpireSnapshots deleteWith(Consumer<String> function) {
    this.deleteFunc = function;
    return this;
  }

  @Override
  public ExpireSnapshots executeDeleteWith(ExecutorService executor) {
    this.deleteExecutor = executor;
    return this;
  }

  @Override
  public ExpireSnapshots planWith(ExecutorService executor) {
    this.planExecutor = executor;
    return this;
  }

  @Override
  @Deprecated
  public ExpireSnapshots cleanExpiredFiles(boolean clean) {
    return cleanupLevel(clean ? CleanupLevel.ALL : CleanupLevel.NONE);
  }

  @Override
  public ExpireSnapshots cleanupLevel(CleanupLevel cleanupLevel) {
    this.level = cleanupLevel;
    return this;
  }

  @Override
  public ExpireSnapshots cleanExpiredMetadata(boolean clean) {
    expire.cleanExpiredMetadata(clean);
    return this;
  }

  @Override
  public List<Snapshot> apply() {
    return expire.apply();
  }

  @Override
  public void commit() {
    TableMetadata before = ops.refresh();
    expire.cleanupLevel(CleanupLevel.NONE).commit();
    if (level != CleanupLevel.NONE) {
      cleanUp(before, ops.refresh());
    }
  }

  private void cleanUp(TableMetadata before, TableMetadata after) {
    List<Snapshot> expired =
        before.snapshots().stream().filter(s -> after.snapshot(s.snapshotId()) == null).toList();
    if (expired.isEmpty()) {
      return;
    }

    FileIO io = ops.io();
    Map<String, ManifestFile> remaining = manifests(after.snapshots(), io);
    Map<String, ManifestFile> unreachable = manifests(expired, io);
    unreachable.keySet().removeAll(remaining.keySet());

    if (level == CleanupLevel.ALL && !unreachable.isEmpty()) {
      Set<String> files = contentFiles(unreachable.values(), before, io);
      files.removeAll(contentFiles(remaining.values(), before, io));
      delete(files, "data", io);
    }

    delete(unreachable.keySet(), "manifest", io);
    delete(expired.stream().map(Snapshot::manifestListLocation).toList(), "manifest list", io);
    Set<String> statistics = statistics(before);
    statistics.removeAll(statistics(after));
    delete(statistics, "statistics", io);
  }

  private Map<String, ManifestFile> manifests(List<Snapshot> snapshots, FileIO io) {
    Map<String, ManifestFile> byPath = new ConcurrentHashMap<>();
    Tasks.foreach(snapshots)
        .executeWith(planExecutor)
        .stopOnFailure()
        .throwFailureWhenFinished()
        .run(snapshot -> snapshot.allManifests(io).forEach(m -> byPath.put(m.path(), m)));
    return new LinkedHashMap<>(byPath);
  }

  private Set<String> contentFiles(
      Collection<ManifestFile> manifests, TableMetadata metadata, FileIO io) {
    Set<String> paths = ConcurrentHashMap.newKeySet();
    Tasks.foreach(manifests)
        .executeWith(planExecutor)
        .stopOnFailure()
        .throwFailureWhenFinished()
        .run(
            manifest -> {
              try (CloseableIterable<String> live =
                  ManifestFiles.readPaths(manifest, io, metadata.specsById())) {
                live.forEach(paths::add);
              } catch (IOException e) {
                throw new UncheckedIOException("Failed to close manifest " + manifest.path(), e);
              }
            });
    return new HashSet<>(paths);
  }

  private static Set<String> statistics(TableMetadata metadata) {
    return Stream.concat(
            metadata.statisticsFiles().stream().map(StatisticsFile::path),
            metadata.partitionStatisticsFiles().stream().map(PartitionStatisticsFile::path))
        .collect(Collectors.toCollection(HashSet::new));
  }

  private void delete(Collection<String> paths, String type, FileIO io) {
    if (deleteFunc == null && deleteExecutor == null) {
      CatalogUtil.deleteFiles(io, paths, type);
      return;
    }

    Tasks.foreach(paths)
        .executeWith(deleteExecutor)
        .suppressFailureWhenFinished()
        .run((deleteFunc == null ? (Consumer<String>) io::deleteFile : deleteFunc)::accept);
  }
}
