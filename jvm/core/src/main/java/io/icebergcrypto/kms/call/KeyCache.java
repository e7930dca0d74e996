package io.icebergcrypto.kms.call;

import io.icebergcrypto.KmsUnavailableException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Unwrapped keys in memory, for a limited time each. Threads that ask for one key at the same time
 * share one call; callers get copies.
 *
 * <p>Every read of an entry checks the clock, so no key is returned after its time in any case. The
 * bytes of those whose time is over are overwritten by the next use of the cache, by a timer if it
 * is not used, and when the cache is closed.
 */
public final class KeyCache {
  /**
   * What is looked up: a wrapped key, and the table it is asked for, as a KMS may refuse it to
   * another. The buffer's content counts, not its identity.
   */
  private record CacheKey(String wrappingKeyId, String tableUuid, ByteBuffer wrapped) {
    static CacheKey of(String wrappingKeyId, ByteBuffer wrapped) {
      return new CacheKey(wrappingKeyId, CallContext.tableUuid(), ByteBuffer.wrap(copyOf(wrapped)));
    }
  }

  /** An unwrapped key, or one that is on its way. What it holds is overwritten under its lock. */
  private static final class Entry {
    private final CacheKey key;
    private final CompletableFuture<byte[]> unwrapped = new CompletableFuture<>();
    private volatile long endsNanos;

    private Entry(CacheKey key) {
      this.key = key;
    }
  }

  private final ConcurrentMap<CacheKey, Entry> entries = new ConcurrentHashMap<>();
  private final Queue<Entry> byEnd = new ConcurrentLinkedQueue<>(); // all live equally long
  private final long ttlMs;
  private final LongSupplier nanoClock;
  private volatile boolean closed;

  public KeyCache(long ttlMs) {
    this(ttlMs, System::nanoTime);
  }

  public KeyCache(long ttlMs, LongSupplier nanoClock) {
    this.ttlMs = ttlMs;
    this.nanoClock = nanoClock;
  }

  public static byte[] copyOf(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  /**
   * Answers from the cache, or loads.
   *
   * @param load calls the KMS; its error goes to every thread that waits for this key
   * @param metrics told whether it was a hit
   */
  public ByteBuffer get(
      String wrappingKeyId, ByteBuffer wrapped, Supplier<ByteBuffer> load, KmsMetrics metrics) {
    if (!keeps()) {
      metrics.add(KmsMetrics.Count.MISSES, 1);
      return load.get();
    }

    wipeEnded();
    CacheKey key = CacheKey.of(wrappingKeyId, wrapped);
    while (true) {
      Entry mine = new Entry(key);
      Entry present = entries.putIfAbsent(key, mine);
      if (present == null) {
        metrics.add(KmsMetrics.Count.MISSES, 1);
        return load(mine, load);
      }

      byte[] answer = copyOfEntry(present);
      if (answer != null) {
        metrics.add(KmsMetrics.Count.HITS, 1);
        return ByteBuffer.wrap(answer);
      }
    }
  }

  /** Keeps a key that this process has just wrapped, so that reading it back costs no call. */
  public void put(String wrappingKeyId, ByteBuffer wrapped, ByteBuffer unwrapped) {
    if (!keeps()) {
      return;
    }

    wipeEnded();
    Entry entry = new Entry(CacheKey.of(wrappingKeyId, wrapped));
    entry.endsNanos = end();
    entry.unwrapped.complete(copyOf(unwrapped));
    if (entries.putIfAbsent(entry.key, entry) == null) {
      keepUntilItsEnd(entry);
    }
  }

  /** Forgets a key and overwrites its bytes. */
  public void forget(String wrappingKeyId, ByteBuffer wrapped) {
    Entry entry = entries.get(CacheKey.of(wrappingKeyId, wrapped));
    if (entry != null && entry.unwrapped.isDone()) {
      wipe(entry);
    }
  }

  /** Whether a key that is unwrapped now is still there for the next who needs it. */
  public boolean keeps() {
    return ttlMs > 0 && !closed;
  }

  /** How many keys are in memory. */
  public int size() {
    wipeEnded();
    return entries.size();
  }

  /** Forgets all keys and overwrites their bytes; from now on no key is kept. */
  public void close() {
    this.closed = true;
    entries.values().forEach(this::wipe);
    byEnd.clear();
  }

  private ByteBuffer load(Entry entry, Supplier<ByteBuffer> load) {
    byte[] unwrapped;
    try {
      unwrapped = copyOf(load.get());
    } catch (Throwable e) {
      entries.remove(entry.key, entry);
      // a cancelled task says nothing of the key: a caller that waits for it asks again
      entry.unwrapped.completeExceptionally(
          Thread.currentThread().isInterrupted() ? new CancellationException() : e);
      throw e;
    }

    // the answer is copied before anyone could wipe the entry
    ByteBuffer answer = ByteBuffer.wrap(unwrapped.clone());
    entry.endsNanos = end();
    entry.unwrapped.complete(unwrapped);
    keepUntilItsEnd(entry);
    return answer;
  }

  /**
   * A copy of the entry's key, waiting for it if need be; null when its time is over, it has just
   * been wiped, or who loaded it was cancelled.
   */
  private byte[] copyOfEntry(Entry entry) {
    byte[] shared;
    try {
      shared = entry.unwrapped.get();
    } catch (CancellationException e) {
      return null;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      } else if (e.getCause() instanceof Error cause) {
        throw cause;
      }
      throw new IllegalStateException(e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new KmsUnavailableException(
          String.format(
              "Waiting for a key wrapped under '%s' was interrupted", entry.key.wrappingKeyId()),
          "The query or task was cancelled.",
          e);
    }

    if (hasEnded(entry)) {
      wipe(entry);
    }

    synchronized (entry) {
      return entries.get(entry.key) == entry ? shared.clone() : null;
    }
  }

  private long end() {
    return nanoClock.getAsLong() + TimeUnit.MILLISECONDS.toNanos(ttlMs);
  }

  private boolean hasEnded(Entry entry) {
    return nanoClock.getAsLong() - entry.endsNanos >= 0;
  }

  /**
   * The timer only overwrites a key that nobody asks for; it does not decide whether a key is
   * valid.
   */
  private void keepUntilItsEnd(Entry entry) {
    byEnd.add(entry);
    if (closed) {
      wipe(entry); // closed while this was loading
      byEnd.clear();
    } else {
      DaemonThreads.later(ttlMs, this::wipeEnded);
    }
  }

  /** Overwrites the keys whose time is over, and no others. */
  private void wipeEnded() {
    for (Entry first = byEnd.peek(); first != null && hasEnded(first); first = byEnd.peek()) {
      wipe(first);
      byEnd.remove(first);
    }
  }

  private void wipe(Entry entry) {
    // the same lock as the copy's: nobody copies a half-wiped key
    synchronized (entry) {
      entries.remove(entry.key, entry);
      if (entry.unwrapped.isDone() && !entry.unwrapped.isCompletedExceptionally()) {
        Arrays.fill(entry.unwrapped.join(), (byte) 0);
      }
    }
  }
}
