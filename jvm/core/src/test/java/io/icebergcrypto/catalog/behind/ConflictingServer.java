package io.icebergcrypto.catalog.behind;

import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.rest.ErrorHandlers;
import org.apache.iceberg.rest.responses.ErrorResponse;

/**
 * Operations of a catalog that says "conflict" to each commit, after others have committed. Those
 * that pass for a REST catalog's have older metadata for a while then.
 */
final class ConflictingServer implements ForwardingOperations {
  private final TableOperations below;
  private final boolean made;
  private final Runnable since;
  private final boolean isOfRest;
  private int stale;
  private TableMetadata before;

  /** Makes one that is not of REST. */
  ConflictingServer(TableOperations below, boolean made, Runnable since) {
    this(below, made, since, 0, false);
  }

  /**
   * Makes one of REST.
   *
   * @param made whether it makes the commits
   * @param since what others do after each
   * @param stale how many loads give the metadata from before it
   */
  ConflictingServer(TableOperations below, boolean made, Runnable since, int stale) {
    this(below, made, since, stale, true);
  }

  private ConflictingServer(
      TableOperations below, boolean made, Runnable since, int stale, boolean isOfRest) {
    this.below = below;
    this.made = made;
    this.since = since;
    this.stale = stale;
    this.isOfRest = isOfRest;
  }

  boolean isOfRest() {
    return isOfRest;
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
    if (!isOfRest) {
      throw new CommitFailedException("a conflict");
    }

    ErrorHandlers.tableCommitHandler()
        .accept(
            ErrorResponse.builder()
                .responseCode(409)
                .withType("CommitFailedException")
                .withMessage("it has changed")
                .build());
  }
}
