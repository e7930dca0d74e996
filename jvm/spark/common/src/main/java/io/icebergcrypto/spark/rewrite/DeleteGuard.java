package io.icebergcrypto.spark.rewrite;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.util.HashSet;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotChanges;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.ValidationException;

/**
 * Operations of a table that commit no snapshot in which rows come back: none that is without a
 * delete file that still applies to its data. Iceberg does not check that. When {@code
 * rewrite_data_files} replaces all data, it drops delete files of other commits that came between,
 * as it looks at the data that it keeps, and not at what it adds, which is older (pull request
 * 10962 of Iceberg).
 */
record DeleteGuard(TableOperations below, Thread caller) implements ForwardingOperations {
  /** A table whose commits are checked. */
  static BaseTable in(BaseTable table) {
    return new BaseTable(
        new DeleteGuard(table.operations(), Thread.currentThread()),
        table.name(),
        table.reporter());
  }

  /**
   * Commits what was checked.
   *
   * @throws ValidationException when a delete file is dropped that still applies; nothing was
   *     committed
   */
  @Override
  public void commit(TableMetadata base, TableMetadata metadata) {
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.AddSnapshot added) {
        check(added.snapshot());
      }
    }

    CancelledException.check(caller); // Iceberg commits parts in a thread of its own
    below.commit(base, metadata);
  }

  private void check(Snapshot snapshot) {
    SnapshotChanges changes =
        SnapshotChanges.builderFor(new BaseTable(below, "")).snapshot(snapshot).build();
    long oldest = DanglingDeletes.oldestData(snapshot, io());
    Set<String> rewritten = new HashSet<>();
    for (DeleteFile file : changes.removedDeleteFiles()) {
      if (DanglingDeletes.mayApply(file, oldest)) {
        if (rewritten.isEmpty()) {
          changes.removedDataFiles().forEach(data -> rewritten.add(data.location()));
        }

        boolean isOfRewritten =
            file.referencedDataFile() != null && rewritten.contains(file.referencedDataFile());
        ValidationException.check(
            isOfRewritten,
            "delete file %s would go, and still applies to data of sequence number %s",
            file.location(),
            oldest);
      }
    }
  }

  @Override
  public TableOperations temp(TableMetadata uncommitted) {
    return below.temp(uncommitted);
  }
}
