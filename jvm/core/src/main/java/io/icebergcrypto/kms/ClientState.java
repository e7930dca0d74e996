package io.icebergcrypto.kms;

import io.icebergcrypto.kms.call.DaemonThreads;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.kms.call.Resilience;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * What all copies of one catalog's client share in this JVM: the client, with its login and
 * connections; the cache, the counters and the circuit breakers.
 *
 * <p>Spark does not close catalogs, and executors are not told when a session ends. So what was not
 * used for as long as keys may be kept, and for at least ten minutes, is closed and forgotten; the
 * next use makes a new one.
 */
final class ClientState {
  private static final long IDLE_MIN_MS = 600_000L;
  private static final ConcurrentMap<String, ClientState> BY_ID = new ConcurrentHashMap<>();

  private final String id;
  private final KeyManagementClient client;
  private final KeyCache cache;
  private final KmsMetrics metrics;
  private final Resilience resilience;
  private volatile long usedNanos = System.nanoTime();
  private volatile boolean closed = false;

  private ClientState(
      String id,
      KeyManagementClient client,
      long ttlMs,
      Resilience.Limits limits,
      KmsMetrics metrics) {
    this.id = id;
    this.client = client;
    this.cache = new KeyCache(ttlMs);
    this.metrics = metrics;
    boolean limited = client instanceof ConfiguredKmsClient ours && ours.limitsRequests();
    this.resilience = new Resilience(limits, metrics, limited);
  }

  /**
   * The instance of an id in this JVM; it is made if it does not exist.
   *
   * @param metrics the counters of a predecessor that was closed; they go on
   */
  static ClientState of(
      String id,
      KeyManagementClient client,
      long ttlMs,
      Resilience.Limits limits,
      KmsMetrics metrics) {
    return BY_ID.computeIfAbsent(
        id,
        ignored -> {
          ClientState made = new ClientState(id, client, ttlMs, limits, metrics);
          made.closeWhenIdle(Math.max(ttlMs, IDLE_MIN_MS));
          return made;
        });
  }

  /** Closes that of a client which is no longer referenced; copies of it may make another one. */
  static void giveUp(String id) {
    ClientState one = BY_ID.get(id);
    if (one != null) {
      one.forget();
      if (one.client instanceof ConfiguredKmsClient ours) {
        ours.close();
      }
    }
  }

  /** How many there are in this JVM. */
  static int count() {
    return BY_ID.size();
  }

  KeyManagementClient client() {
    return client;
  }

  KeyCache cache() {
    return cache;
  }

  KmsMetrics metrics() {
    return metrics;
  }

  Resilience resilience() {
    return resilience;
  }

  boolean isClosed() {
    return closed;
  }

  ClientState use() {
    this.usedNanos = System.nanoTime();
    return this;
  }

  /** Overwrites the keys, closes the client, and makes way for another of this id. */
  void close() {
    forget();
    client.close();
  }

  /** Closes this if it was not used for so long; a timer calls it. */
  void closeIfIdle(long idleMs) {
    if (closed) {
      return;
    }

    if (TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - usedNanos) < idleMs) {
      closeWhenIdle(idleMs);
    } else if (startsAgain()) {
      close();
    } else {
      forget();
    }
  }

  private void closeWhenIdle(long idleMs) {
    DaemonThreads.later(idleMs, () -> closeIfIdle(idleMs));
  }

  private void forget() {
    this.closed = true;
    BY_ID.remove(id, this);
    cache.close();
  }

  /**
   * Whether a closed client works when it is used again. Ours do, if their configuration says so;
   * of a user's own class that is not known.
   */
  private boolean startsAgain() {
    return client instanceof ConfiguredKmsClient ours && ours.mayCloseWhenIdle();
  }
}
