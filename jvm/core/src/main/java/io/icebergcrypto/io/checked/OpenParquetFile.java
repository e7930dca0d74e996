package io.icebergcrypto.io.checked;

import io.icebergcrypto.kms.config.Services;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The Parquet files that a reader has open. Parquet decrypts by itself and its errors name no file,
 * so an engine that learns of failed reads ({@link Watcher}) names it instead.
 *
 * <p>A read goes through many data files, one after the other, on one thread. Iceberg opens delete
 * files on other threads, before and while the rows that they concern are read.
 */
public final class OpenParquetFile {
  private final Set<String> onOtherThreads = new LinkedHashSet<>();
  private String table;
  private String current;
  private Thread reader; // which is watched

  public OpenParquetFile() {}

  /** The table's full name; null before the first file. */
  public synchronized String table() {
    return table;
  }

  /**
   * Where the files are of which one is read: that which the reader opened last, and all that other
   * threads opened. None before the first file.
   */
  public synchronized List<String> locations() {
    Set<String> all = new LinkedHashSet<>();
    if (current != null) {
      all.add(current);
    }

    all.addAll(onOtherThreads);
    return List.copyOf(all);
  }

  synchronized void opened(String newTable, String newLocation) {
    this.table = newTable;
    if (reader == null) {
      for (Watcher watcher : Watchers.ALL) {
        if (watcher.watch(this)) {
          this.reader = Thread.currentThread();
        }
      }
    }

    if (reader == Thread.currentThread()) {
      this.current = newLocation;
    } else {
      onOtherThreads.add(newLocation);
    }
  }

  /** Learns when an engine's read fails. Found by the service loader. */
  public interface Watcher {
    /**
     * A reader opens a Parquet file on this thread.
     *
     * @param file tells which files are open at any later time
     * @return whether this is the thread that reads, whose failures it learns of from now on;
     *     false: it is asked again at the next file
     */
    boolean watch(OpenParquetFile file);
  }

  private static final class Watchers {
    private static final List<Watcher> ALL = Services.of(Watcher.class);
  }
}
