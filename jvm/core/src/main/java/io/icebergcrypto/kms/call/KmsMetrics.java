package io.icebergcrypto.kms.call;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;

/**
 * Counts what goes to a KMS from this JVM. A call is money and a round trip; a hit is an unwrap
 * that the cache answered.
 */
public final class KmsMetrics {
  private static final KmsMetrics OF_JVM = new KmsMetrics(null);

  private final KmsMetrics sum;
  private final LongAdder wrapCalls = new LongAdder();
  private final LongAdder unwrapCalls = new LongAdder();
  private final LongAdder hits = new LongAdder();
  private final LongAdder misses = new LongAdder();
  private final LongAdder errors = new LongAdder();
  private final LongAdder retries = new LongAdder();
  private final LongAdder wrapNanos = new LongAdder();
  private final LongAdder unwrapNanos = new LongAdder();

  /** Counters that also count for {@link #ofJvm}. */
  public KmsMetrics() {
    this(OF_JVM);
  }

  private KmsMetrics(KmsMetrics sum) {
    this.sum = sum;
  }

  /** What all catalogs of this JVM asked since it started, those that were closed included. */
  public static KmsMetrics ofJvm() {
    return OF_JVM;
  }

  public void wrapped(long nanos) {
    count(counters -> counters.wrapCalls.increment());
    count(counters -> counters.wrapNanos.add(nanos));
  }

  public void unwrapped(long nanos) {
    count(counters -> counters.unwrapCalls.increment());
    count(counters -> counters.unwrapNanos.add(nanos));
  }

  void hit() {
    count(counters -> counters.hits.increment());
  }

  void missed() {
    count(counters -> counters.misses.increment());
  }

  void retried() {
    count(counters -> counters.retries.increment());
  }

  public void failed() {
    count(counters -> counters.errors.increment());
  }

  private void count(Consumer<KmsMetrics> event) {
    event.accept(this);
    if (sum != null) {
      event.accept(sum);
    }
  }

  /** Calls of the KMS to wrap a key, failed ones included. */
  public long wrapCalls() {
    return wrapCalls.sum();
  }

  /** Calls of the KMS to unwrap a key, failed ones included. */
  public long unwrapCalls() {
    return unwrapCalls.sum();
  }

  /** Unwraps that the cache answered, without a call. */
  public long hits() {
    return hits.sum();
  }

  /** Unwraps that the cache could not answer. */
  public long misses() {
    return misses.sum();
  }

  /** Calls that failed. */
  public long errors() {
    return errors.sum();
  }

  /** Calls that were made again because the KMS had been unavailable. */
  public long retries() {
    return retries.sum();
  }

  /** The counters by name; latencies are sums over all calls, in milliseconds. */
  public Map<String, Object> snapshot() {
    Map<String, Object> counters = new LinkedHashMap<>();
    counters.put("wrap_calls", wrapCalls());
    counters.put("unwrap_calls", unwrapCalls());
    counters.put("hits", hits());
    counters.put("misses", misses());
    counters.put("errors", errors());
    counters.put("retries", retries());
    counters.put("wrap_ms", wrapNanos.sum() / 1_000_000L);
    counters.put("unwrap_ms", unwrapNanos.sum() / 1_000_000L);
    return counters;
  }
}
