package io.icebergcrypto.kms;

import io.icebergcrypto.KmsUnavailableException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Unwrapped keys in memory, for a limited time. Threads that ask for one key at the same time share
 * one call. An entry's bytes are overwritten when it expires and when the cache is cleared; callers
 * get copies.
 */
final class KeyCache {
  /** What is looked up: a wrapped key. The buffer's content counts, not its identity. */
  private record CacheKey(String wrappingKeyId, ByteBuffer wrapped) {
    static CacheKey of(String wrappingKeyId, ByteBuffer wrapped) {
      return new CacheKey(wrappingKeyId, ByteBuffer.wrap(copyOf(wrapped)));
    }
  }

  private final ConcurrentMap<CacheKey, CompletableFuture<byte[]>> entries =
      new ConcurrentHashMap<>();
  private final long ttlMs;
  private volatile boolean closed;

  KeyCache(long ttlMs) {
    this.ttlMs = ttlMs;
  }

  static byte[] copyOf(ByteBuffer buffer) {
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
  ByteBuffer get(
      String wrappingKeyId, ByteBuffer wrapped, Supplier<ByteBuffer> load, KmsMetrics metrics) {
    if (ttlMs == 0 || closed) {
      metrics.missed();
      return load.get();
    }

    CacheKey key = CacheKey.of(wrappingKeyId, wrapped);
    while (true) {
      CompletableFuture<byte[]> mine = new CompletableFuture<>();
      CompletableFuture<byte[]> present = entries.putIfAbsent(key, mine);
      if (present == null) {
        metrics.missed();
        return load(key, mine, load);
      }

      byte[] answer = copyOfEntry(key, present);
      if (answer != null) {
        metrics.hit();
        return ByteBuffer.wrap(answer);
      }
    }
  }

  /** Keeps a key that this process has just wrapped, so that reading it back costs no call. */
  void put(String wrappingKeyId, ByteBuffer wrapped, ByteBuffer unwrapped) {
    if (ttlMs == 0 || closed) {
      return;
    }

    CacheKey key = CacheKey.of(wrappingKeyId, wrapped);
    CompletableFuture<byte[]> entry = CompletableFuture.completedFuture(copyOf(unwrapped));
    if (entries.putIfAbsent(key, entry) == null) {
      wipeLater(key, entry);
    }
  }

  /** How many keys are in memory. */
  int size() {
    return entries.size();
  }

  /** Forgets all keys, overwrites their bytes and keeps none from now on. */
  void close() {
    this.closed = true;
    entries.forEach(this::wipe);
  }

  private ByteBuffer load(
      CacheKey key, CompletableFuture<byte[]> entry, Supplier<ByteBuffer> load) {
    byte[] unwrapped;
    try {
      unwrapped = copyOf(load.get());
    } catch (Throwable e) {
      entries.remove(key, entry);
      // a cancelled task says nothing of the key: who waits for it asks again
      entry.completeExceptionally(
          Thread.currentThread().isInterrupted() ? new CancellationException() : e);
      throw e;
    }

    // the answer is copied before anybody could wipe the entry
    ByteBuffer answer = ByteBuffer.wrap(unwrapped.clone());
    entry.complete(unwrapped);
    if (closed || entries.get(key) != entry) {
      wipe(key, entry); // closed while this was loading
    } else {
      wipeLater(key, entry);
    }

    return answer;
  }

  /**
   * A copy of the entry's key, waiting for it if need be; null when it has just been wiped, or who
   * loaded it was cancelled.
   */
  private byte[] copyOfEntry(CacheKey key, CompletableFuture<byte[]> entry) {
    byte[] shared;
    try {
      shared = entry.get();
    } catch (CancellationException e) {
      return null;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }
      throw new IllegalStateException(e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new KmsUnavailableException(
          String.format(
              "Waiting for a key wrapped under '%s' was interrupted", key.wrappingKeyId()),
          "The query or task was cancelled.",
          e);
    }

    synchronized (entry) {
      return entries.get(key) == entry ? shared.clone() : null;
    }
  }

  private void wipeLater(CacheKey key, CompletableFuture<byte[]> entry) {
    CompletableFuture.delayedExecutor(ttlMs, TimeUnit.MILLISECONDS).execute(() -> wipe(key, entry));
  }

  private void wipe(CacheKey key, CompletableFuture<byte[]> entry) {
    // the same lock as the copy's: nobody copies a half-wiped key
    synchronized (entry) {
      entries.remove(key, entry);
      if (entry.isDone() && !entry.isCompletedExceptionally()) {
        Arrays.fill(entry.join(), (byte) 0);
      }
    }
  }
}
