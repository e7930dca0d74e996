package io.icebergcrypto.spark.migrate;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ThrottleTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final long start = System.nanoTime();

  @Test
  void groupsBeginWhenThoseBeforeHaveHadTheirTime() {
    Throttle throttle = new Throttle(100);
    assertThat(throttle.groupBytes()).isEqualTo(6000);
    long first = start + SECOND;
    assertThat(throttle.pause(3000, first)).isZero();
    assertThat(throttle.pause(3000, first + 20 * SECOND)).isEqualTo(10 * SECOND);
    assertThat(throttle.pause(50, first + 20 * SECOND)).isEqualTo(40 * SECOND);
    assertThat(throttle.pause(3000, first + 90 * SECOND)).as("a slow cluster").isZero();
  }

  @Test
  void theRateOfWhatFollowsIsThatWhichWasMeasuredOrAllowed() {
    assertThat(new Throttle(100).rate(60, 2 * SECOND)).isEqualTo(30);
    assertThat(new Throttle(100).rate(6000, 2 * SECOND)).as("the first group").isEqualTo(100);
    assertThat(new Throttle(100).rate(1, 2 * SECOND)).as("to divide by").isEqualTo(1);
  }

  @Test
  void withoutARateNothingWaits() {
    Throttle throttle = new Throttle(Long.MAX_VALUE);
    assertThat(throttle.groupBytes()).isEqualTo(Long.MAX_VALUE);
    throttle.pause(1L << 50, start + SECOND);
    assertThat(throttle.pause(1L << 50, start + SECOND)).isLessThan(SECOND / 1000);
  }
}
