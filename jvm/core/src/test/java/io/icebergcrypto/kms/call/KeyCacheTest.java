package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** The cache's time, by a clock that the tests move. */
class KeyCacheTest {
  private static final long HOUR_MS = 3_600_000L;

  private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 5); // nanoTime may overflow
  private final KeyCache cache = new KeyCache(HOUR_MS, clock::get);
  private final KmsMetrics metrics = new KmsMetrics();
  private final AtomicInteger calls = new AtomicInteger();

  private ByteBuffer get(int key) {
    return cache.get(
        "k",
        ByteBuffer.wrap(new byte[] {(byte) key}),
        () -> {
          calls.incrementAndGet();
          return ByteBuffer.wrap(new byte[] {(byte) key, 1});
        },
        metrics);
  }

  private void pass(long ms) {
    clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(ms));
  }

  @Test
  void aKeyIsAnsweredUntilItsTimeIsOverAndNotAfter() {
    get(1);
    pass(HOUR_MS - 1);
    assertThat(get(1)).isEqualTo(ByteBuffer.wrap(new byte[] {1, 1}));
    assertThat(calls).hasValue(1);
    pass(1);
    assertThat(get(1)).isEqualTo(ByteBuffer.wrap(new byte[] {1, 1}));
    assertThat(calls).hasValue(2);
    pass(HOUR_MS - 1); // from the second call on
    get(1);
    assertThat(calls).hasValue(2);
    assertThat(metrics.snapshot()).containsEntry("hits", 2L);
    assertThat(metrics.snapshot()).containsEntry("misses", 2L);
  }

  @Test
  void readingAKeyDoesNotProlongIt() {
    get(1);
    for (int i = 0; i < 4; i++) {
      pass(HOUR_MS / 4);
      get(1);
    }
    assertThat(calls).hasValue(2);
  }

  @Test
  void eachKeyHasItsOwnTime() {
    get(1);
    pass(HOUR_MS / 2);
    get(2);
    pass(HOUR_MS / 2);
    assertThat(cache.size()).isEqualTo(1);
    get(2);
    assertThat(calls).hasValue(2);
    get(1);
    assertThat(calls).hasValue(3);
  }

  @Test
  void whatWasWrappedHereEndsToo() {
    byte[] key = {7, 7};
    cache.put("k", ByteBuffer.wrap(new byte[] {1}), ByteBuffer.wrap(key));
    assertThat(get(1)).isEqualTo(ByteBuffer.wrap(key));
    pass(HOUR_MS);
    cache.put("k", ByteBuffer.wrap(new byte[] {1}), ByteBuffer.wrap(new byte[] {8}));
    assertThat(get(1)).isEqualTo(ByteBuffer.wrap(new byte[] {8}));
    assertThat(calls).hasValue(0);
    pass(HOUR_MS);
    get(1);
    assertThat(calls).hasValue(1);
  }

  @Test
  void whoWaitsForATaskThatIsCancelledAsksByItself() throws Exception {
    CompletableFuture<ByteBuffer> waiting =
        waitingFor(
            () -> {
              awaitUninterrupted(new CountDownLatch(1));
              throw new IllegalStateException("cancelled");
            },
            Thread::interrupt);
    assertThat(waiting.get(10, TimeUnit.SECONDS)).isEqualTo(ByteBuffer.wrap(new byte[] {1, 1}));
    assertThat(calls).hasValue(1);
  }

  /** Any other type would tell readers of a manifest list that its key was exchanged. */
  @Test
  void whoWaitsGetsTheErrorAsItIs() throws Exception {
    OutOfMemoryError error = new OutOfMemoryError("of a test");
    CountDownLatch goOn = new CountDownLatch(1);
    CompletableFuture<ByteBuffer> waiting =
        waitingFor(
            () -> {
              awaitUninterrupted(goOn);
              throw error;
            },
            loads -> goOn.countDown());
    assertThatThrownBy(() -> waiting.get(10, TimeUnit.SECONDS)).hasCause(error);
    assertThat(calls).hasValue(0);
  }

  /**
   * A thread that waits for a key that another thread loads, and what is then done with that
   * thread.
   */
  private CompletableFuture<ByteBuffer> waitingFor(Supplier<ByteBuffer> load, Consumer<Thread> end)
      throws InterruptedException {
    CountDownLatch asked = new CountDownLatch(1);
    Supplier<ByteBuffer> told =
        () -> {
          asked.countDown();
          return load.get();
        };
    Thread loads = new Thread(() -> cache.get("k", ByteBuffer.wrap(new byte[] {1}), told, metrics));
    loads.setUncaughtExceptionHandler((thread, e) -> {});
    loads.start();
    asked.await();
    CompletableFuture<ByteBuffer> waiting = new CompletableFuture<>();
    Thread waits = new Thread(() -> waiting.completeAsync(() -> get(1), Runnable::run));
    waits.start();
    while (waits.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }

    end.accept(loads);
    return waiting;
  }

  private static void awaitUninterrupted(CountDownLatch latch) {
    try {
      latch.await(60, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Test
  void whatLoadsWhileItIsClosedIsAnsweredAndNotKept() {
    ByteBuffer answer =
        cache.get(
            "k",
            ByteBuffer.wrap(new byte[] {1}),
            () -> {
              cache.close();
              return ByteBuffer.wrap(new byte[] {1, 1});
            },
            metrics);
    assertThat(answer).isEqualTo(ByteBuffer.wrap(new byte[] {1, 1}));
    assertThat(cache.size()).isZero();
  }

  @Test
  void theTimeBeginsWhenTheKmsHasAnswered() {
    cache.get(
        "k",
        ByteBuffer.wrap(new byte[] {1}),
        () -> {
          pass(HOUR_MS * 2);
          return ByteBuffer.wrap(new byte[] {1, 1});
        },
        metrics);
    pass(HOUR_MS - 1);
    get(1);
    assertThat(calls).hasValue(0);
  }
}
