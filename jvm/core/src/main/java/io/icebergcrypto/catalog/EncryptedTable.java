package io.icebergcrypto.catalog;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.cleanup.ExpireEncryptedSnapshots;
import io.icebergcrypto.integrity.MetadataAuthentication;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.BatchScan;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.Transaction;

/**
 * A table of an encrypting catalog. A table without a key id behaves as the delegate's own, but for
 * the guard on its commits.
 */
public final class EncryptedTable extends BaseTable {
  private static final long serialVersionUID = 1L;

  private final transient EncryptedTableOperations ops;
  private final transient BaseTable delegate;

  EncryptedTable(EncryptedTableOperations ops, BaseTable delegate) {
    super(ops, delegate.name(), delegate.reporter(), delegate.labels());
    this.ops = ops;
    this.delegate = delegate;
  }

  /** Whether the table has a key id. */
  public boolean encrypted() {
    return ops.encrypted();
  }

  /** The same table, whose files without a key can be read. */
  EncryptedTable withPlaintextFiles() {
    return new EncryptedTable(ops.withPlaintextFiles(), delegate);
  }

  /** Whether the table's metadata is authenticated. */
  MetadataAuthentication metadataAuthentication() {
    return ops.metadataAuthentication();
  }

  @Override
  public TableScan newScan() {
    if (!plannedByServer()) {
      return super.newScan();
    }

    refuseIfEncrypted();
    return delegate.newScan();
  }

  @Override
  public BatchScan newBatchScan() {
    if (!plannedByServer()) {
      return super.newBatchScan();
    }

    refuseIfEncrypted();
    return delegate.newBatchScan();
  }

  @Override
  public boolean allowDistributedPlanning() {
    return delegate.allowDistributedPlanning();
  }

  @Override
  public ExpireSnapshots expireSnapshots() {
    ExpireSnapshots plain = super.expireSnapshots();
    return ops.encrypted() ? new ExpireEncryptedSnapshots(name(), plain, ops) : plain;
  }

  @Override
  public Transaction newTransaction() {
    Transaction plain = super.newTransaction();
    return ops.encrypted() ? new EncryptedTransaction((BaseTransaction) plain, ops) : plain;
  }

  /** What travels to executors is the table as data: its FileIO, its manager, its metadata. */
  private Object writeReplace() {
    return SerializableTable.copyOf(this);
  }

  /**
   * Iceberg's REST catalog has a table class of its own for tables whose scans the server plans.
   */
  private boolean plannedByServer() {
    return delegate.getClass() != BaseTable.class;
  }

  private void refuseIfEncrypted() {
    if (ops.encrypted()) {
      throw new NotSupportedException(
              "the REST server is to plan its scans, and the server cannot read encrypted"
                  + " manifests",
              "Set scan-planning-mode=client for this catalog, and for this table on the server.")
          .inTable(name());
    }
  }
}
