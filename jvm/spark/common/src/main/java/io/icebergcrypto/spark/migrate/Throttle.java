package io.icebergcrypto.spark.migrate;

/** Lets groups of files begin so that their bytes are copied at a rate, on average. */
final class Throttle {
  /** A group has at most as many bytes as may be copied in this time, but for its last file. */
  private static final long SECONDS_PER_GROUP = 60;

  private final long bytesPerSecond;
  private long free = System.nanoTime();

  Throttle(long bytesPerSecond) {
    this.bytesPerSecond = bytesPerSecond;
  }

  /** How many bytes a group has at most. */
  long groupBytes() {
    return bytesPerSecond > Long.MAX_VALUE / SECONDS_PER_GROUP
        ? Long.MAX_VALUE
        : bytesPerSecond * SECONDS_PER_GROUP;
  }

  /** How many nanoseconds to wait for bytes, until those that began before have had their time. */
  long pause(long bytes, long now) {
    long start = Math.max(free, now);
    this.free = start + (long) (1e9 * bytes / bytesPerSecond);
    return start - now;
  }

  /**
   * At how many bytes a second more is copied, if bytes have taken a time: the last did not wait.
   */
  long rate(long bytes, long nanos) {
    return Math.max(1, Math.min(bytesPerSecond, (long) (1e9 * bytes / Math.max(1, nanos))));
  }
}
