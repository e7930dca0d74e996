package io.icebergcrypto.metadata;

import java.util.Objects;
import java.util.function.Supplier;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.exceptions.NoSuchTableException;

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
  private TableMetadata newest; // guarded by this

  public LoadedMetadata(TableOperations delegate, String tableName) {
    this.delegate = delegate;
    this.tableName = tableName;
  }

  /** The metadata that was loaded last; null when there is no table. */
  public TableMetadata current() {
    return checked(delegate::current);
  }

  /**
   * The metadata in force; null when there is no table yet. Where it is older than what was there
   * before, it is loaded again, as it may be from a cache or a replica that lags; then it is what
   * the catalog says, which may have been set back.
   *
   * @throws NoSuchTableException when there was one. Iceberg's operations throw it once, and then
   *     return null.
   */
  public synchronized TableMetadata refresh() {
    TableMetadata before = newest;
    TableMetadata metadata = checked(delegate::refresh);
    if (isOlder(metadata, before)) {
      metadata = checked(delegate::refresh);
    }

    return before == null ? metadata : existing(tableName, metadata);
  }

  /**
   * Whether metadata is older than other metadata of the same table, which a catalog has returned
   * already: it is not the newest then.
   *
   * @param other null: none
   */
  public static boolean isOlder(TableMetadata metadata, TableMetadata other) {
    if (metadata == null
        || other == null
        || metadata == other
        || !Objects.equals(metadata.uuid(), other.uuid())) {
      return false;
    }

    boolean newer = logs(metadata, other); // regardless of clients' clocks
    return !newer
        && (metadata.lastSequenceNumber() < other.lastSequenceNumber()
            || metadata.lastUpdatedMillis() < other.lastUpdatedMillis()
            || logs(other, metadata));
  }

  private static boolean logs(TableMetadata metadata, TableMetadata earlier) {
    String file = earlier.metadataFileLocation();
    return file != null
        && metadata.previousFiles().stream().anyMatch(entry -> entry.file().equals(file));
  }

  /**
   * Metadata of a table that must exist.
   *
   * @throws NoSuchTableException when it is null
   */
  public static TableMetadata existing(String tableName, TableMetadata metadata) {
    if (metadata == null) {
      throw new NoSuchTableException("Table does not exist: %s", tableName);
    }

    return metadata;
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
          CheckedLoad.checked(tableName, failed ? delegate::refresh : load, delegate::refresh);
      this.failed = false;
      this.newest = metadata == null ? newest : metadata;
      return metadata;
    } catch (RuntimeException e) {
      this.failed = true;
      throw e;
    }
  }
}
