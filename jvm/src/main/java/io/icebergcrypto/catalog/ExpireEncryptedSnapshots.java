package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.util.Tasks;
import org.apache.iceberg.util.ThreadPools;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Expires snapshots and deletes their files. Iceberg's own clean-up opens manifest lists and
 * manifests without decrypting them and so deletes nothing of an encrypted table; here Iceberg
 * expires and this class cleans up: what an expired snapshot reaches and no remaining one does.
 * When any file cannot be read nothing is deleted.
 */
final class ExpireEncryptedSnapshots implements ExpireSnapshots {
  private static final Logger LOG = LoggerFactory.getLogger(ExpireEncryptedSnapshots.class);

  private final String tableName;
  private final ExpireSnapshots expire;
  private final TableOperations ops;
  private Consumer<String> deleteFunc;
  private ExecutorService deleteExecutor;
  private ExecutorService planExecutor = ThreadPools.getWorkerPool();
  private CleanupLevel level = CleanupLevel.ALL;

  ExpireEncryptedSnapshots(String tableName, ExpireSnapshots expire, TableOperations ops) {
    this.tableName = tableName;
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
    expire.cleanExpiredFiles(clean);
    this.level = clean ? CleanupLevel.ALL : CleanupLevel.NONE;
    return this;
  }

  @Override
  public ExpireSnapshots cleanupLevel(CleanupLevel cleanupLevel) {
    expire.cleanupLevel(cleanupLevel); // which checks it
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
    if (level == CleanupLevel.NONE) {
      expire.commit();
      return;
    }

    Map<String, ManifestFile> manifests = manifests(before);
    expire.cleanupLevel(CleanupLevel.NONE).commit();
    try {
      cleanUp(before, ops.refresh(), manifests);
    } catch (RuntimeException e) {
      // no error: the commit is done, and a caller could take one for a failed commit
      LOG.warn(
          "Expired snapshots of {}, but could not delete their files: remove_orphan_files will",
          before.location(),
          e);
    }
  }

  /** Without the key, or the list, nothing is expired, rather than expired and left behind. */
  private Map<String, ManifestFile> manifests(TableMetadata before) {
    try {
      return new ReachableFiles(ops.io(), before.specsById(), planExecutor)
          .manifests(before.snapshots());
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName).withHint("No snapshot was expired.");
    }
  }

  private void cleanUp(
      TableMetadata before, TableMetadata after, Map<String, ManifestFile> manifests) {
    List<Snapshot> expired =
        before.snapshots().stream().filter(s -> after.snapshot(s.snapshotId()) == null).toList();
    if (expired.isEmpty()) {
      return;
    }

    FileIO io = ops.io();
    Map<Integer, PartitionSpec> specs = new HashMap<>(before.specsById());
    specs.putAll(after.specsById());
    ReachableFiles reachable = new ReachableFiles(io, specs, planExecutor);
    Map<String, ManifestFile> remaining = reachable.manifests(after.snapshots());
    Map<String, ManifestFile> unreachable = new HashMap<>(manifests);
    unreachable.keySet().removeAll(remaining.keySet());

    Set<String> statistics = new HashSet<>(StatisticsKeys.paths(before));
    statistics.removeAll(StatisticsKeys.paths(after));
    boolean data = level == CleanupLevel.ALL && !unreachable.isEmpty();
    Set<String> live = new HashSet<>(remaining.keySet());
    after.snapshots().forEach(snapshot -> live.add(snapshot.manifestListLocation()));
    if (data || !statistics.isEmpty()) { // an entry of statistics may name any file
      live.addAll(reachable.contentFiles(remaining.values()));
    }

    if (data) {
      deleteBut(live, reachable.contentFiles(unreachable.values()), "data", io);
    }

    deleteBut(live, unreachable.keySet(), "manifest", io);
    List<String> lists = expired.stream().map(Snapshot::manifestListLocation).toList();
    deleteBut(live, lists, "manifest list", io);
    deleteBut(live, statistics, "statistics", io);
  }

  private void deleteBut(Set<String> live, Collection<String> paths, String type, FileIO io) {
    delete(paths.stream().filter(path -> !live.contains(path)).toList(), type, io);
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
