package io.icebergcrypto.cleanup;

import java.util.List;
import java.util.Optional;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;

/**
 * Reads the manifest lists of a table to be purged where work that grows with a table is done: in
 * Spark, on executors.
 */
public interface ManifestListCheck {
  /**
   * A manifest list that could not be read there.
   *
   * @param snapshot whose list it is
   * @param why the error's text
   */
  record Unreadable(Snapshot snapshot, String why) {}

  /** Whether so many are worth it; fewer are read by the caller. */
  boolean takes(int lists);

  /**
   * Reads the list of each snapshot, and keeps none.
   *
   * @return one that cannot be read; empty: all can
   */
  Optional<Unreadable> unreadable(Table table, List<Snapshot> snapshots);
}
