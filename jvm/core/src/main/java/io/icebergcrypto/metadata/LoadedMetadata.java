package io.icebergcrypto.metadata;

import java.util.function.Supplier;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;

/**
 * A table's metadata as the operations of the catalog behind load it. All that decorates the same
 * operations shares one of these: they are not made for two threads, one of which would compare the
 * file that it read with the hash that the other did.
 *
 * <p>After a refresh that failed, Iceberg's operations hand out what they read as if it were
 * checked (Hive's compare the hash last): it is refreshed until that succeeds.
 */
public final class LoadedMetadata {
  private final TableOperations delegate;
  private final String tableName;
  private boolean failed; // guarded by this

  public LoadedMetadata(TableOperations delegate, String tableName) {
    this.delegate = delegate;
    this.tableName = tableName;
  }

  /** The metadata that was loaded last; null for a table that is not there. */
  public TableMetadata current() {
    return checked(delegate::current);
  }

  /** The metadata in force; null for a table that is not there. */
  public TableMetadata refresh() {
    return checked(delegate::refresh);
  }

  private synchronized TableMetadata checked(Supplier<TableMetadata> load) {
    try {
      TableMetadata metadata =
          HashMismatchRetry.checked(
              tableName, failed ? delegate::refresh : load, delegate::refresh);
      this.failed = false;
      return metadata;
    } catch (RuntimeException e) {
      this.failed = true;
      throw e;
    }
  }
}
