package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import java.util.List;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.responses.ErrorResponse;

/**
 * Operations of a catalog that says "conflict" to each commit, after others have committed, or that
 * its last snapshot is there. Those that pass for a REST catalog's have older metadata for a while
 * then.
 */
final class ConflictingServer implements ForwardingOperations {
  /** What it says to a commit. */
  enum Answer {
    /** The catalog itself, in conflict. */
    CONFLICT,
    /** A REST server, in conflict. */
    REST_CONFLICT,
    /** A REST server to a request that comes twice. */
    SNAPSHOT_EXISTS
  }

  private final TableOperations below;
  private final boolean made;
  private final Runnable since;
  private final Answer answer;
  private int stale;
  private TableMetadata before;

  /**
   * Makes one.
   *
   * @param made whether it makes the commits
   * @param since what others do after each
   * @param stale how many loads give the metadata from before it
   */
  ConflictingServer(TableOperations below, boolean made, Runnable since, Answer answer, int stale) {
    this.below = below;
    this.made = made;
    this.since = since;
    this.answer = answer;
    this.stale = stale;
  }

  boolean isOfRest() {
    return answer != Answer.CONFLICT;
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
    switch (answer) {
      case CONFLICT -> throw new CommitFailedException("a conflict");
      case REST_CONFLICT -> fail(409, "CommitFailedException", "it has changed");
      case SNAPSHOT_EXISTS ->
          fail(400, "ValidationException", "Snapshot already exists for id: " + last(metadata));
      default -> throw new AssertionError(answer);
    }
  }

  private static long last(TableMetadata metadata) {
    List<Snapshot> all = metadata.snapshots();
    return all.get(all.size() - 1).snapshotId();
  }

  private static void fail(int code, String type, String message) {
    ErrorHandlers.tableCommitHandler()
        .accept(
            ErrorResponse.builder().responseCode(code).withType(type).withMessage(message).build());
  }
}
