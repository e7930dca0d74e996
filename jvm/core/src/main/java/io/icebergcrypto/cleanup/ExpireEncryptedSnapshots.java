package io.icebergcrypto.cleanup;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.AsCaller;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.io.SupportsBulkOperations;
import org.apache.iceberg.util.Tasks;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Expires snapshots and deletes their files. Iceberg's own clean-up opens manifest lists and
 * manifests without decrypting them and so deletes nothing of an encrypted table; here Iceberg
 * expires and this class cleans up: what an expired snapshot reaches and no remaining one does.
 * When any file cannot be read nothing is deleted. In a transaction it waits until that is
 * committed.
 */
public final class ExpireEncryptedSnapshots implements ExpireSnapshots {
  private static final Logger LOG = LoggerFactory.getLogger(ExpireEncryptedSnapshots.class);

  private final String tableName;
  private final ExpireSnapshots expire;
  private final TableOperations ops;
  private final Supplier<TableMetadata> start;
  private final Consumer<CleanUp> whenCommitted;
  private Consumer<String> deleteFunc;
  private ExecutorService deleteExecutor;
  private ExecutorService planExecutor = AsCaller.workers();
  private CleanupLevel level = CleanupLevel.ALL;

  /** Expires in a commit of its own. */
  public ExpireEncryptedSnapshots(String tableName, ExpireSnapshots expire, TableOperations ops) {
    this(tableName, expire, ops, ops::refresh, cleanUp -> cleanUp.after(ops::current));
  }

  /**
   * Expires as a step of something larger.
   *
   * @param start returns the metadata that this step starts from
   * @param whenCommitted takes what is to be called once all is committed
   */
  public ExpireEncryptedSnapshots(
      String tableName,
      ExpireSnapshots expire,
      TableOperations ops,
      Supplier<TableMetadata> start,
      Consumer<CleanUp> whenCommitted) {
    this.tableName = tableName;
    this.expire = expire;
    this.ops = ops;
    this.start = start;
    this.whenCommitted = whenCommitted;
  }

  /** Deletes the files of the expired snapshots. */
  public interface CleanUp {
    /**
     * Deletes them. A failure is logged: the commit is done, and a caller could take an error for a
     * failed commit.
     *
     * @param base returns the metadata that the commit was made on, newer than that of the start
     *     when other commits came between; or what is in force since
     */
    void after(Supplier<TableMetadata> base);
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
    if (level == CleanupLevel.NONE || expire.apply().isEmpty()) { // nothing to delete
      expire.commit();
      return;
    }

    TableMetadata before = start.get();
    ExpiredFiles files = new ExpiredFiles(ops, planExecutor, this::delete);
    checkKeys(files, before);
    expire.cleanupLevel(CleanupLevel.NONE).commit();
    whenCommitted.accept(
        base -> {
          try {
            files.delete(before, base.get(), level == CleanupLevel.ALL);
          } catch (RuntimeException e) {
            LOG.warn(
                "Expired snapshots of {}, but could not delete their files: remove_orphan_files"
                    + " will",
                before.location(),
                e);
          }
        });
  }

  /** Without the key, or the list, nothing is expired, rather than expired and left behind. */
  private void checkKeys(ExpiredFiles files, TableMetadata before) {
    try {
      files.manifests(before, before.snapshots());
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName).withHint("No snapshot was expired.");
    }
  }

  private void delete(Collection<String> paths, String type) {
    if (deleteFunc == null
        && (deleteExecutor == null || ops.io() instanceof SupportsBulkOperations)) {
      CatalogUtil.deleteFiles(ops.io(), paths, type);
      return;
    }

    Tasks.foreach(paths)
        .executeWith(deleteExecutor)
        .suppressFailureWhenFinished()
        .run((deleteFunc == null ? (Consumer<String>) ops.io()::deleteFile : deleteFunc)::accept);
  }
}
