package io.icebergcrypto.io.checked;

import io.icebergcrypto.kms.config.Services;
import java.util.List;

/**
 * The Parquet file that a reader has open. Parquet decrypts by itself and its errors name no file,
 * so an engine that learns of failed reads ({@link Watcher}) names it instead.
 */
public final class OpenParquetFile {
  /** One read goes through many files, one after the other; this is the current one. */
  private volatile String table;

  private volatile String location;
  private volatile boolean watched = false;

  public OpenParquetFile() {}

  /** The table's full name; null before the first file. */
  public String table() {
    return table;
  }

  /** Where the file is; null before the first file. */
  public String location() {
    return location;
  }

  void opened(String newTable, String newLocation) {
    this.table = newTable;
    this.location = newLocation;
    if (!watched) {
      this.watched = true;
      Watchers.ALL.forEach(watcher -> watcher.watch(this));
    }
  }

  /** Learns when an engine's read fails. Found by the service loader. */
  public interface Watcher {
    /**
     * A reader opens its first Parquet file, on the thread that reads.
     *
     * @param file tells which file is open at any later time
     */
    void watch(OpenParquetFile file);
  }

  private static final class Watchers {
    private static final List<Watcher> ALL = Services.of(Watcher.class);
  }
}
