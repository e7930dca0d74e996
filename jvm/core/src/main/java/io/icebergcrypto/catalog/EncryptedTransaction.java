package io.icebergcrypto.catalog;

import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.cleanup.ExpireEncryptedSnapshots;
import io.icebergcrypto.commit.OwnProperties;
import io.icebergcrypto.config.EncryptionProperties;
import java.util.ArrayList;
import java.util.List;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.DeleteFiles;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.ManageSnapshots;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.ReplacePartitions;
import org.apache.iceberg.ReplaceSortOrder;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RewriteManifests;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateLocation;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.UpdatePartitionStatistics;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.UpdateStatistics;

/**
 * A transaction on a table of an encrypting catalog: Iceberg's, but that snapshots of an encrypted
 * table which expire in it take their files along, once it is committed. When it fails, or is never
 * committed, nothing is deleted. A check may follow the commit.
 *
 * <p>That is of {@link #expireSnapshots}. The expiry of {@link #table} is Iceberg's own, which
 * deletes what it can before the commit: statistics files, for one.
 */
final class EncryptedTransaction implements Transaction {
  private final BaseTransaction delegate;
  private final TableOperations ops;
  private final CatalogBehind behind;
  private final List<ExpireEncryptedSnapshots.CleanUp> cleanUps = new ArrayList<>();
  private final Runnable afterCommit;

  EncryptedTransaction(BaseTransaction delegate, TableOperations ops, CatalogBehind behind) {
    this(delegate, ops, behind, () -> {});
  }

  EncryptedTransaction(
      BaseTransaction delegate, TableOperations ops, CatalogBehind behind, Runnable afterCommit) {
    this.delegate = delegate;
    this.ops = ops;
    this.behind = behind;
    this.afterCommit = afterCommit;
  }

  @Override
  public ExpireSnapshots expireSnapshots() {
    if (EncryptionProperties.keyId(delegate.currentMetadata().properties()) == null) {
      return delegate.expireSnapshots();
    }

    behind.requireOwnFiles(delegate.tableName(), delegate.currentMetadata().properties());
    return new ExpireEncryptedSnapshots(
        delegate.tableName(),
        delegate.expireSnapshots(),
        ops,
        delegate::currentMetadata,
        cleanUps::add);
  }

  @Override
  public void commitTransaction() {
    delegate.commitTransaction();
    afterCommit.run();
    cleanUps.forEach(cleanUp -> cleanUp.after(delegate::startMetadata));
    cleanUps.clear();
  }

  @Override
  public Table table() {
    return delegate.table();
  }

  @Override
  public UpdateSchema updateSchema() {
    return delegate.updateSchema();
  }

  @Override
  public UpdatePartitionSpec updateSpec() {
    return delegate.updateSpec();
  }

  @Override
  public UpdateProperties updateProperties() {
    return new OwnProperties(table().name(), table().properties(), delegate.updateProperties());
  }

  @Override
  public ReplaceSortOrder replaceSortOrder() {
    return delegate.replaceSortOrder();
  }

  @Override
  public UpdateLocation updateLocation() {
    return delegate.updateLocation();
  }

  @Override
  public AppendFiles newAppend() {
    return delegate.newAppend();
  }

  @Override
  public AppendFiles newFastAppend() {
    return delegate.newFastAppend();
  }

  @Override
  public RewriteFiles newRewrite() {
    return delegate.newRewrite();
  }

  @Override
  public RewriteManifests rewriteManifests() {
    return delegate.rewriteManifests();
  }

  @Override
  public OverwriteFiles newOverwrite() {
    return delegate.newOverwrite();
  }

  @Override
  public RowDelta newRowDelta() {
    return delegate.newRowDelta();
  }

  @Override
  public ReplacePartitions newReplacePartitions() {
    return delegate.newReplacePartitions();
  }

  @Override
  public DeleteFiles newDelete() {
    return delegate.newDelete();
  }

  @Override
  public UpdateStatistics updateStatistics() {
    return delegate.updateStatistics();
  }

  @Override
  public UpdatePartitionStatistics updatePartitionStatistics() {
    return delegate.updatePartitionStatistics();
  }

  @Override
  public ManageSnapshots manageSnapshots() {
    return delegate.manageSnapshots();
  }
}
