package io.icebergcrypto.kms.call;

import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts what goes to a KMS from this JVM. A call is money and a round trip; a hit is an unwrap
 * that the cache answered.
 */
public final class KmsMetrics {
  /** What is counted; failed calls are calls. A latency is a sum over all calls. */
  public enum Count {
    WRAP_CALLS(1),
    UNWRAP_CALLS(1),
    HITS(1),
    MISSES(1),
    ERRORS(1),
    RETRIES(1),
    WRAP_MS(1_000_000),
    UNWRAP_MS(1_000_000);

    private final long unit; // of what is added, in one of what is shown

    Count(long unit) {
      this.unit = unit;
    }
  }

  private static final KmsMetrics OF_JVM = new KmsMetrics(null);

  private final KmsMetrics sum;
  private final Map<Count, LongAdder> counters = new EnumMap<>(Count.class);

  /** Counters that also count for {@link #ofJvm}. */
  public KmsMetrics() {
    this(OF_JVM);
  }

  private KmsMetrics(KmsMetrics sum) {
    this.sum = sum;
    for (Count count : Count.values()) {
      counters.put(count, new LongAdder());
    }
  }

  /** What all catalogs of this JVM asked since it started, those that were closed included. */
  public static KmsMetrics ofJvm() {
    return OF_JVM;
  }

  public void wrapped(long nanos) {
    add(Count.WRAP_CALLS, 1);
    add(Count.WRAP_MS, nanos);
  }

  public void unwrapped(long nanos) {
    add(Count.UNWRAP_CALLS, 1);
    add(Count.UNWRAP_MS, nanos);
  }

  /** Counts some more; of a latency nanoseconds. */
  public void add(Count count, long more) {
    counters.get(count).add(more);
    if (sum != null) {
      sum.add(count, more);
    }
  }

  /** Calls of the KMS to wrap a key, failed ones included. */
  public long wrapCalls() {
    return counters.get(Count.WRAP_CALLS).sum();
  }

  /** Calls of the KMS to unwrap a key, failed ones included. */
  public long unwrapCalls() {
    return counters.get(Count.UNWRAP_CALLS).sum();
  }

  /** Calls that were made again because the KMS had not answered. */
  public long retries() {
    return counters.get(Count.RETRIES).sum();
  }

  /** The counters by name, in lower case. */
  public Map<String, Object> snapshot() {
    Map<String, Object> values = new LinkedHashMap<>();
    counters.forEach(
        (count, adder) ->
            values.put(count.name().toLowerCase(Locale.ROOT), adder.sum() / count.unit));
    return values;
  }
}
