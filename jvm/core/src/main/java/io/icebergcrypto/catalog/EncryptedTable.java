package io.icebergcrypto.catalog;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.cleanup.ExpireEncryptedSnapshots;
import io.icebergcrypto.commit.OwnProperties;
import io.icebergcrypto.integrity.MetadataAuthentication;
import java.util.Collection;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.BatchScan;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * A table of an encrypting catalog. A table without a key id behaves as the delegate's own, but for
 * the guard on its commits.
 */
public final class EncryptedTable extends DecoratedTable {
  private static final long serialVersionUID = 1L;

  private final transient EncryptedTableOperations ops;
  private final transient BaseTable delegate;
  private final transient CatalogBehind behind;

  EncryptedTable(
      EncryptedTableOperations ops, BaseTable delegate, String name, CatalogBehind behind) {
    super(ops, delegate, name);
    this.ops = ops;
    this.delegate = delegate;
    this.behind = behind;
  }

  /**
   * A table as an audit reads it: with the files that are plaintext, even if the catalog does not
   * allow them.
   *
   * @param olderKeys keys of older metadata files, for the files that only these name
   */
  public static BaseTable forAudit(BaseTable table, Collection<EncryptedKey> olderKeys) {
    return table instanceof EncryptedTable encrypted
        ? new EncryptedTable(
            encrypted.ops.forAudit(olderKeys), encrypted.delegate, table.name(), encrypted.behind)
        : table;
  }

  /**
   * Which KMS a table's catalog has, and where it is; null if it has none, or is not one of ours.
   */
  public static String kms(BaseTable table) {
    return table instanceof EncryptedTable encrypted ? encrypted.ops.kms() : null;
  }

  /** Whether a table's catalog accepts encrypted files whose length nothing gives. */
  public static boolean acceptsFilesWithoutLength(BaseTable table) {
    return table instanceof EncryptedTable encrypted && encrypted.ops.acceptsFilesWithoutLength();
  }

  /** Whether a table's metadata, of some time, is authenticated, and by what, or why not. */
  public static MetadataAuthentication metadataAuthentication(
      BaseTable table, TableMetadata metadata) {
    return table instanceof EncryptedTable encrypted
        ? encrypted.ops.metadataAuthentication(metadata)
        : new MetadataAuthentication(false, "its catalog is not one of iceberg-crypto");
  }

  @Override
  public TableScan newScan() {
    if (!plannedByServer()) {
      ops.unwrapAhead();
      return super.newScan();
    }

    refuseIfEncrypted();
    return delegate.newScan();
  }

  @Override
  public BatchScan newBatchScan() {
    if (!plannedByServer()) {
      ops.unwrapAhead();
      return super.newBatchScan();
    }

    refuseIfEncrypted();
    return delegate.newBatchScan();
  }

  /** Spark asks this when it builds a scan of its own, which then is neither of the two above. */
  @Override
  public boolean allowDistributedPlanning() {
    ops.unwrapAhead();
    return delegate.allowDistributedPlanning();
  }

  @Override
  public UpdateProperties updateProperties() {
    return new OwnProperties(name(), properties(), super.updateProperties());
  }

  @Override
  public ExpireSnapshots expireSnapshots() {
    boolean encrypted = ops.encrypted();
    ExpireSnapshots plain = super.expireSnapshots();
    if (!encrypted) {
      return plain;
    }

    behind.requireOwnFiles(name(), properties());
    return new ExpireEncryptedSnapshots(name(), plain, ops);
  }

  @Override
  public Transaction newTransaction() {
    ops.required(); // it may have been dropped
    return new EncryptedTransaction((BaseTransaction) super.newTransaction(), ops, behind);
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
              "scan planning is left to the REST server, which cannot read encrypted manifests",
              "Set scan-planning-mode=client for this catalog, and for this table on the server.")
          .inTable(name());
    }
  }
}
