package io.icebergcrypto.kms.call;

import dev.failsafe.CircuitBreaker;
import io.icebergcrypto.KmsUnavailableException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Circuit breakers: one for each master key whose calls fail, and one for the way to the KMS.
 *
 * <p>A key's counts its calls without an answer that can be used, for any reason but that the KMS
 * is asked too often, and leaves that key alone: others go on (a key may be in an external key
 * manager that is down). The one of the way counts what got no connection and leaves the KMS alone
 * for every key.
 *
 * <p>They count calls, not attempts: otherwise a blip that meets many tasks at once would open one
 * before any of them has tried again. Half open, each lets one call through.
 */
final class Breakers {
  /** Of more failing keys than this the one is forgotten that failed longest ago. */
  static final int MOST_KEYS = 256;

  private final Resilience.Limits limits;
  private final CircuitBreaker<Object> way;
  private final Map<String, CircuitBreaker<Object>> failing =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, CircuitBreaker<Object>> eldest) {
          return size() > MOST_KEYS;
        }
      };

  Breakers(Resilience.Limits limits) {
    this.limits = limits;
    this.way = breaker(limits);
  }

  /**
   * Lets a call through; one of {@link #answered}, {@link #failed} and {@link #untold} must follow.
   *
   * @throws KmsUnavailableException when the key, or the KMS, is being left alone
   */
  void enter(String kms, String keyId) {
    CircuitBreaker<Object> key = of(keyId);
    if (key != null && !key.tryAcquirePermit()) {
      throw leftAlone(kms, keyId, "the last %d calls for it failed, and it", key);
    }

    if (!way.tryAcquirePermit()) {
      endTrial(key);
      throw leftAlone(kms, keyId, "its last %d calls found no connection, and it", way);
    }
  }

  /** The KMS answered, be it with a refusal. */
  void answered(String keyId) {
    way.recordSuccess();
    CircuitBreaker<Object> key = of(keyId);
    if (key != null) {
      key.recordSuccess();
      forget(keyId, key);
    }
  }

  /** The KMS answered that it is asked too often: that says nothing about the key. */
  void throttled(String keyId) {
    way.recordSuccess();
    endTrial(of(keyId));
  }

  /** No answer came, or not one that can be used. */
  void failed(String keyId, Throwable failure) {
    switch (Failure.of(failure)) {
      case UNREACHED -> way.recordFailure();
      case SILENT -> endTrial(way);
      case ANSWERED -> way.recordSuccess(); // it answers, if only that it cannot now
    }

    orNew(keyId).recordFailure();
  }

  /** The call was cancelled, or not made at all: that says nothing about the KMS. */
  void untold(String keyId) {
    endTrial(way);
    endTrial(of(keyId));
  }

  /** A trial of a half-open circuit must have an outcome. */
  private static void endTrial(CircuitBreaker<Object> breaker) {
    if (breaker != null && breaker.isHalfOpen()) {
      breaker.recordFailure();
    }
  }

  /** The state of the way: {@code closed} (the KMS is asked), {@code open}, {@code half_open}. */
  String circuit() {
    return way.getState().name().toLowerCase(Locale.ROOT);
  }

  /** How many keys are being left alone. */
  synchronized int keysLeftAlone() {
    return (int) failing.values().stream().filter(key -> !key.isClosed()).count();
  }

  /** How many keys have a breaker. */
  synchronized int size() {
    return failing.size();
  }

  /** What a failure says about the way to the KMS. */
  enum Failure {
    /** No connection, or one that broke. */
    UNREACHED,
    /** No answer in time: the way's fault, or that of the key. */
    SILENT,
    /** The KMS said that it cannot now. */
    ANSWERED;

    static Failure of(Throwable failure) {
      for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
        String name = cause.getClass().getSimpleName(); // each library has time-outs of its own
        if (name.contains("Timeout")) {
          return name.contains("Connect") ? UNREACHED : SILENT;
        }

        if (cause instanceof InterruptedIOException || cause instanceof InterruptedException) {
          return SILENT;
        }

        if (cause instanceof IOException) {
          return UNREACHED;
        }
      }

      return ANSWERED;
    }
  }

  private synchronized CircuitBreaker<Object> of(String keyId) {
    return failing.get(keyId);
  }

  private synchronized CircuitBreaker<Object> orNew(String keyId) {
    return failing.computeIfAbsent(keyId, ignored -> breaker(limits));
  }

  private synchronized void forget(String keyId, CircuitBreaker<Object> key) {
    if (key.isClosed()) {
      failing.remove(keyId, key);
    }
  }

  private KmsUnavailableException leftAlone(
      String kms, String keyId, String why, CircuitBreaker<Object> breaker) {
    return new KmsUnavailableException(
        String.format(
            "%s was not called for key '%s': "
                + String.format(why, limits.breakerFailures())
                + " is not called for another %d ms",
            kms,
            keyId,
            breaker.getRemainingDelay().toMillis()),
        "Check that the KMS runs, can be reached and can use the key; `iceberg-crypto doctor` shows"
            + " what is wrong. Keys in the cache are still served.");
  }

  private static CircuitBreaker<Object> breaker(Resilience.Limits limits) {
    return CircuitBreaker.builder()
        .withFailureThreshold(limits.breakerFailures())
        .withSuccessThreshold(1)
        .withDelay(Duration.ofMillis(limits.breakerDelayMs()))
        .build();
  }
}
