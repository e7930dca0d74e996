package io.icebergcrypto.io.stream;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts the encrypted files that this JVM writes and opens, of all tables, since it started.
 *
 * <p>Parquet encrypts its own files: they are counted, and their bytes are not.
 */
public final class FileMetrics {
  private static final LongAdder ENCRYPTED = new LongAdder();
  private static final LongAdder DECRYPTED = new LongAdder();
  private static final LongAdder STREAM_BYTES_ENCRYPTED = new LongAdder();

  private FileMetrics() {}

  /** A file got a key, and is going to be written. */
  public static void encrypted() {
    ENCRYPTED.increment();
  }

  /** A file with a key is going to be read. */
  public static void decrypted() {
    DECRYPTED.increment();
  }

  static void streamed(int bytes) {
    STREAM_BYTES_ENCRYPTED.add(bytes);
  }

  /** The counters by name. */
  public static Map<String, Object> snapshot() {
    Map<String, Object> counters = new LinkedHashMap<>();
    counters.put("encrypted", ENCRYPTED.sum());
    counters.put("decrypted", DECRYPTED.sum());
    counters.put("stream_bytes_encrypted", STREAM_BYTES_ENCRYPTED.sum());
    return counters;
  }
}
