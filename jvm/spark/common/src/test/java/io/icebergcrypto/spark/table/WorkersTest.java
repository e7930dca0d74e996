package io.icebergcrypto.spark.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.CancelledException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class WorkersTest {
  private final List<Integer> begun = new CopyOnWriteArrayList<>();
  private final List<Integer> ended = new CopyOnWriteArrayList<>();
  private final CountDownLatch never = new CountDownLatch(1);
  private final CountDownLatch refused = new CountDownLatch(1);
  private final CountDownLatch both = new CountDownLatch(2);

  @AfterEach
  void forgetCancel() {
    CancelledException.ended();
  }

  @Test
  void eachPartIsDoneOnce() {
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    run(
        100,
        4,
        i -> {
          threads.add(Thread.currentThread());
          begun.add(i);
        });
    assertThat(begun).hasSize(100).doesNotHaveDuplicates();
    assertThat(threads).hasSizeBetween(1, 4).doesNotContain(Thread.currentThread());
  }

  @Test
  void afterAnErrorNoOtherBegins() {
    assertThatThrownBy(
            () ->
                runTwoOfNine(
                    i -> {
                      uninterrupted(both);
                      if (i == 0) {
                        throw new IllegalStateException("no");
                      }

                      uninterrupted(refused);
                      ended.add(i);
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("no");
    assertThat(begun).containsExactlyInAnyOrder(0, 1);
    assertThat(ended).as("what was under way").containsExactly(1);
  }

  @Test
  void aPartThatWasCancelledCancelsAll() {
    assertThatThrownBy(
            () ->
                runTwoOfNine(
                    i -> {
                      if (i == 0) {
                        uninterrupted(both);
                        throw new CancellationException("of a Spark job");
                      }

                      untilCancelled(i);
                    }))
        .isInstanceOf(CancelledException.class);
    assertThat(begun).containsExactlyInAnyOrder(0, 1);
    assertThat(ended).containsExactly(1);
  }

  @Test
  void aCancelOfTheCallEndsAllThatWasBegun() {
    Thread caller = Thread.currentThread();
    assertThatThrownBy(
            () ->
                runTwoOfNine(
                    i -> {
                      if (i == 1) {
                        uninterrupted(both);
                        CancelledException.cancel(caller);
                      }

                      untilCancelled(i);
                    }))
        .isInstanceOf(CancelledException.class);
    assertThat(begun).containsExactlyInAnyOrder(0, 1);
    assertThat(ended).as("before the call has").containsExactlyInAnyOrder(0, 1);
  }

  @Test
  void aFailureEndsAPause() {
    CountDownLatch begins = new CountDownLatch(1);
    assertThatThrownBy(
            () ->
                Workers.run(
                    2,
                    workers -> {
                      workers.begin(
                          () -> {
                            uninterrupted(begins);
                            throw new IllegalStateException("no");
                          });
                      begins.countDown();
                      workers.pause(TimeUnit.HOURS.toNanos(1));
                      begin(workers, 1, begun::add);
                    }))
        .hasMessage("no");
    assertThat(begun).isEmpty();
  }

  @Test
  void aCheckedErrorOfSparkIsThrownAsItIs() {
    Exception error = new Exception("Job aborted");
    assertThatThrownBy(() -> run(1, 2, i -> WorkersTest.<RuntimeException>sneak(error)))
        .isSameAs(error);
  }

  @SuppressWarnings("unchecked")
  private static <E extends Exception> void sneak(Exception error) throws E {
    throw (E) error;
  }

  @Test
  void aCallThatWasCancelledBeginsNothing() {
    CancelledException.cancel(Thread.currentThread());
    assertThatThrownBy(() -> run(3, 2, begun::add)).isInstanceOf(CancelledException.class);
    assertThat(begun).isEmpty();
  }

  private void run(int count, int threads, IntConsumer work) {
    Workers.run(
        threads, workers -> IntStream.range(0, count).forEach(i -> begin(workers, i, work)));
  }

  /** Two at once, which know of each other when {@link #both} is down. */
  private void runTwoOfNine(IntConsumer work) {
    run(
        9,
        2,
        i -> {
          begun.add(i);
          both.countDown();
          work.accept(i);
        });
  }

  private void begin(Workers workers, int part, IntConsumer work) {
    try {
      workers.begin(() -> work.accept(part));
    } catch (IllegalStateException e) {
      refused.countDown();
      throw e;
    }
  }

  private void untilCancelled(int part) {
    try {
      assertThat(never.await(20, TimeUnit.SECONDS)).as("cancelled").isTrue();
    } catch (InterruptedException e) {
      ended.add(part);
      CancelledException.rethrow(e);
    }
  }

  private static void uninterrupted(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
