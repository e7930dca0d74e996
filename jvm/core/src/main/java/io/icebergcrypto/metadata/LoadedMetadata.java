package io.icebergcrypto.metadata;

import java.util.Objects;
import java.util.function.Supplier;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;

/**
 * A table's metadata as the operations of the catalog behind load it. Whatever decorates the same
 * operations shares one instance: Iceberg's operations are not thread-safe, and one thread could
 * compare the file that it read with the hash that another read.
 *
 * <p>After a failed refresh, Iceberg's operations hand out what they read as if it were checked
 * (Hive's compare the hash last). So this refreshes until that succeeds.
 */
public final class LoadedMetadata {
  private final TableOperations delegate;
  private final String tableName;
  private boolean failed; // guarded by this

  public LoadedMetadata(TableOperations delegate, String tableName) {
    this.delegate = delegate;
    this.tableName = tableName;
  }

  /** The metadata that was loaded last; null when there is no table. */
  public TableMetadata current() {
    return checked(delegate::current);
  }

  /** The metadata in force; null when there is no table. */
  public TableMetadata refresh() {
    return checked(delegate::refresh);
  }

  /**
   * Whether two are the same version of a table's metadata. A REST server may not tell where the
   * file is; its metadata has a time then.
   */
  public static boolean isSame(TableMetadata one, TableMetadata other) {
    return Objects.equals(one.uuid(), other.uuid())
        && Objects.equals(one.metadataFileLocation(), other.metadataFileLocation())
        && one.lastUpdatedMillis() == other.lastUpdatedMillis();
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
