package io.icebergcrypto.commit;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.metadata.LoadedMetadata;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.util.PropertyUtil;
import org.apache.iceberg.util.Tasks;

/** Commits of changes that Iceberg has no operation for. */
public final class CommitRetry {
  private CommitRetry() {}

  /**
   * Commits a change, and goes again on newer metadata when another commit came in between.
   *
   * @param tableName the table's full name
   * @param properties have {@code commit.retry.*}, as a table's properties; empty: Iceberg's
   *     defaults
   * @param change makes the metadata to be of that in force; the same instance: nothing is to be
   *     committed
   * @throws CommitFailedException when others were faster each time
   * @throws NoSuchTableException when the table was dropped meanwhile
   * @throws CancelledException when this thread was interrupted before the commit
   */
  public static void commit(
      String tableName,
      TableOperations ops,
      Map<String, String> properties,
      UnaryOperator<TableMetadata> change) {
    Tasks.foreach(ops)
        .retry(
            PropertyUtil.propertyAsInt(
                properties,
                TableProperties.COMMIT_NUM_RETRIES,
                TableProperties.COMMIT_NUM_RETRIES_DEFAULT))
        .exponentialBackoff(
            PropertyUtil.propertyAsInt(
                properties,
                TableProperties.COMMIT_MIN_RETRY_WAIT_MS,
                TableProperties.COMMIT_MIN_RETRY_WAIT_MS_DEFAULT),
            PropertyUtil.propertyAsInt(
                properties,
                TableProperties.COMMIT_MAX_RETRY_WAIT_MS,
                TableProperties.COMMIT_MAX_RETRY_WAIT_MS_DEFAULT),
            PropertyUtil.propertyAsInt(
                properties,
                TableProperties.COMMIT_TOTAL_RETRY_TIME_MS,
                TableProperties.COMMIT_TOTAL_RETRY_TIME_MS_DEFAULT),
            2.0)
        .onlyRetryOn(CommitFailedException.class)
        .run(
            table -> {
              TableMetadata base = LoadedMetadata.existing(tableName, table.refresh());
              TableMetadata changed = change.apply(base);
              if (changed != base) {
                CancelledException.check();
                table.commit(base, changed);
              }
            });
  }
}
