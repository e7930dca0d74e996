package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.KmsUnavailableException;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class TimedCallsTest {
  private static final TimeLimit SOON = new TimeLimit(1);

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
    TimeLimit patient = new TimeLimit(10_000);
    long end = System.nanoTime() + patient.duration().toNanos();
    while (true) { // until a thread is free again
      try {
        assertThat(calls.within(patient, "no answer", () -> "answered")).isEqualTo("answered");
        return;
      } catch (KmsUnavailableException e) {
        assertThat(e).hasMessageContaining("calls are hanging");
        assertThat(System.nanoTime()).isLessThan(end);
      }
    }
  }
}
