package io.icebergcrypto.io.stream;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts the encrypted files that this JVM writes and opens, of all tables, since it started.
 *
 * <p>Parquet encrypts and decrypts its own files. What it reads of a file is not known here, so the
 * whole file counts when it is opened; what it writes is known to an engine alone, which {@link
 * #written tells} it.
 */
public final class FileMetrics {
  private static final LongAdder ENCRYPTED = new LongAdder();
  private static final LongAdder DECRYPTED = new LongAdder();
  private static final LongAdder STREAM_BYTES_ENCRYPTED = new LongAdder();
  private static final LongAdder STREAM_BYTES_DECRYPTED = new LongAdder();
  private static final LongAdder PARQUET_BYTES_OPENED = new LongAdder();
  private static final LongAdder BYTES_WRITTEN = new LongAdder();
  private static final ThreadLocal<OfThread> OF_THREAD =
      ThreadLocal.withInitial(() -> new OfThread(0, 0));

  private FileMetrics() {}

  /**
   * What a thread did, since it started.
   *
   * @param encrypted files that it began to write
   * @param decrypted files that it opened
   */
  public record OfThread(long encrypted, long decrypted) {
    /** What it did since an earlier time. */
    public OfThread since(OfThread before) {
      return new OfThread(encrypted - before.encrypted, decrypted - before.decrypted);
    }
  }

  /** What the current thread did. */
  public static OfThread ofThread() {
    return OF_THREAD.get();
  }

  /** A file got a key, and is going to be written. */
  public static void encrypted() {
    ENCRYPTED.increment();
    OfThread before = OF_THREAD.get();
    OF_THREAD.set(new OfThread(before.encrypted + 1, before.decrypted));
  }

  /** A file with a key is going to be read. */
  public static void decrypted() {
    DECRYPTED.increment();
    OfThread before = OF_THREAD.get();
    OF_THREAD.set(new OfThread(before.encrypted, before.decrypted + 1));
  }

  /** Parquet opens a file of this length, as stored. */
  public static void parquetOpened(long bytes) {
    PARQUET_BYTES_OPENED.add(bytes);
  }

  /** An engine has written so many bytes of encrypted files, as stored. */
  public static void written(long bytes) {
    BYTES_WRITTEN.add(bytes);
  }

  static void streamEncrypted(int bytes) {
    STREAM_BYTES_ENCRYPTED.add(bytes);
  }

  /** So many bytes of AES GCM streams were decrypted. */
  public static void streamDecrypted(int bytes) {
    STREAM_BYTES_DECRYPTED.add(bytes);
  }

  /** The counters by name. */
  public static Map<String, Object> snapshot() {
    Map<String, Object> counters = new LinkedHashMap<>();
    counters.put("encrypted", ENCRYPTED.sum());
    counters.put("decrypted", DECRYPTED.sum());
    counters.put("stream_bytes_encrypted", STREAM_BYTES_ENCRYPTED.sum());
    counters.put("stream_bytes_decrypted", STREAM_BYTES_DECRYPTED.sum());
    counters.put("parquet_bytes_opened", PARQUET_BYTES_OPENED.sum());
    counters.put("bytes_written", BYTES_WRITTEN.sum());
    return counters;
  }
}
