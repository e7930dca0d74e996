package io.icebergcrypto.spark.table;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.CancelledException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class WorkersTest {
  private final List<Integer> begun = new CopyOnWriteArrayList<>();
  private final List<Integer> ended = new CopyOnWriteArrayList<>();
  private final CountDownLatch never = new CountDownLatch(1);

  @AfterEach
  void forgetCancel() {
    CancelledException.ended();
  }

  @Test
  void eachPartIsDoneOnce() {
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    Workers.run(
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
  void anErrorStopsTheOthers() {
    CountDownLatch waiting = new CountDownLatch(1);
    assertThatThrownBy(
            () ->
                Workers.run(
                    9,
                    2,
                    i -> {
                      begun.add(i);
                      if (i == 0) {
                        uninterrupted(waiting);
                        throw new IllegalStateException("no");
                      }

                      waiting.countDown();
                      untilCancelled(i);
                    }))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("no");
    assertThat(begun).containsExactlyInAnyOrder(0, 1);
    assertThat(ended).containsExactly(1);
  }

  @Test
  void aCancelOfTheCallEndsAllThatWasBegun() {
    Thread caller = Thread.currentThread();
    CountDownLatch both = new CountDownLatch(2);
    assertThatThrownBy(
            () ->
                Workers.run(
                    9,
                    2,
                    i -> {
                      begun.add(i);
                      both.countDown();
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
  void aCallThatWasCancelledBeginsNothing() {
    CancelledException.cancel(Thread.currentThread());
    assertThatThrownBy(() -> Workers.run(3, 2, begun::add)).isInstanceOf(CancelledException.class);
    assertThat(begun).isEmpty();
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
