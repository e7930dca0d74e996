package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.util.List;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.responses.ErrorResponse;

/**
 * Operations that pass for those of a REST catalog. Its server says "conflict" to each commit, or
 * that its last snapshot is there, and then has older metadata for a while.
 */
final class ConflictingServer implements ForwardingOperations {
  private final TableOperations below;
  private final boolean made;
  private final Runnable since;
  private final boolean namesSnapshot;
  private int stale;
  private TableMetadata before;

  /**
   * Makes one.
   *
   * @param made whether it makes the commits
   * @param since what others do after each
   * @param stale how many loads give the metadata from before it
   */
  ConflictingServer(TableOperations below, boolean made, Runnable since, int stale) {
    this(below, made, since, false, stale);
  }

  /**
   * The same.
   *
   * @param namesSnapshot whether it says that the snapshot is there, as to a request that comes
   *     twice
   */
  ConflictingServer(
      TableOperations below, boolean made, Runnable since, boolean namesSnapshot, int stale) {
    this.below = below;
    this.made = made;
    this.since = since;
    this.namesSnapshot = namesSnapshot;
    this.stale = stale;
  }

  @Override
  public TableOperations below() {
    return below;
  }

  @Override
  public TableMetadata refresh() {
    return before != null && stale-- > 0 ? before : below.refresh();
  }

  @Override
  public void commit(TableMetadata base, TableMetadata metadata) {
    if (made) {
      below.commit(base, metadata);
    }

    since.run();
    this.before = base;
    List<Snapshot> snapshots = metadata.snapshots();
    ErrorResponse.Builder answer =
        namesSnapshot
            ? ErrorResponse.builder()
                .responseCode(400)
                .withType("ValidationException")
                .withMessage(
                    "Snapshot already exists for id: "
                        + snapshots.get(snapshots.size() - 1).snapshotId())
            : ErrorResponse.builder()
                .responseCode(409)
                .withType("CommitFailedException")
                .withMessage("it has changed");
    ErrorHandlers.tableCommitHandler().accept(answer.build());
  }
}
