package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.KmsUnavailableException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class TimedCallsTest {
  private static final TimeLimit SOON = new TimeLimit(1);
  private static final TimeLimit PATIENT = new TimeLimit(60_000);

  @Test
  void whereManyCallsHangNoMoreAreMade() throws ExecutionException {
    TimedCalls calls = new TimedCalls("test");
    CountDownLatch answer = new CountDownLatch(1);
    AtomicInteger begun = new AtomicInteger();
    Callable<String> hangs =
        () -> {
          begun.incrementAndGet();
          while (answer.getCount() > 0) {
            try {
              answer.await();
            } catch (InterruptedException e) {
              // as native code, which does not see it
            }
          }
          return "late";
        };
    for (int i = 0; i < 64; i++) {
      assertThatThrownBy(() -> calls.within(SOON, "no answer", hangs))
          .isInstanceOf(KmsUnavailableException.class)
          .hasMessageContaining("no answer within 1 ms");
    }

    assertThatThrownBy(() -> calls.within(SOON, "no answer", hangs))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContainingAll("no answer: 64 calls are hanging", "hint:");
    assertThat(begun).hasValueLessThanOrEqualTo(64);

    answer.countDown();
    assertThat(calls.within(PATIENT, "no answer", () -> "answered")).isEqualTo("answered");
  }

  @Test
  void aCallWithoutAThreadTakesNoPlace() throws ExecutionException {
    AtomicInteger refused = new AtomicInteger();
    TimedCalls calls =
        new TimedCalls(
            work -> {
              if (refused.incrementAndGet() <= 64) {
                throw new OutOfMemoryError("unable to create native thread");
              }
              return new Thread(work);
            });
    for (int i = 0; i < 64; i++) {
      assertThatThrownBy(() -> calls.within(SOON, "no answer", () -> "answered"))
          .isInstanceOf(OutOfMemoryError.class);
    }

    assertThat(calls.within(PATIENT, "no answer", () -> "answered")).isEqualTo("answered");
  }

  /** As on a machine of many cores, at its first keys. */
  @Test
  void callsWaitForAPlace() throws Exception {
    TimedCalls calls = new TimedCalls("test");
    CountDownLatch running = new CountDownLatch(64);
    CountDownLatch answer = new CountDownLatch(1);
    Callable<String> takesAWhile =
        () -> {
          running.countDown();
          answer.await();
          return "answered";
        };
    ExecutorService callers = Executors.newFixedThreadPool(65);
    try {
      List<Future<String>> made = new ArrayList<>();
      for (int i = 0; i < 64; i++) {
        made.add(callers.submit(() -> calls.within(PATIENT, "no answer", takesAWhile)));
      }

      running.await();
      made.add(callers.submit(() -> calls.within(PATIENT, "no answer", takesAWhile)));
      assertThatThrownBy(() -> made.get(64).get(100, TimeUnit.MILLISECONDS))
          .isInstanceOf(TimeoutException.class);
      answer.countDown();
      for (Future<String> each : made) {
        assertThat(each.get()).isEqualTo("answered");
      }
    } finally {
      callers.shutdownNow();
    }
  }
}
