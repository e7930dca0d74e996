package io.icebergcrypto.kms.call;

import dev.failsafe.Failsafe;
import dev.failsafe.FailsafeException;
import dev.failsafe.FailsafeExecutor;
import dev.failsafe.Policy;
import dev.failsafe.RateLimiter;
import dev.failsafe.RetryPolicy;
import dev.failsafe.RetryPolicyBuilder;
import dev.failsafe.Timeout;
import dev.failsafe.TimeoutExceededException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * How this JVM asks one KMS: a limit of calls a second, a time limit for each attempt or request,
 * attempts again when the KMS is unavailable (exponential back-off with jitter), circuit breakers
 * that leave a key or a dead KMS alone ({@link Breakers}), and a deadline over everything. The
 * policies are Failsafe's.
 *
 * <p>Only {@link KmsUnavailableException} is tried again and opens a circuit. A refusal (a missing
 * key, a wrong password) is the KMS's answer, and asking again could even lock an account.
 *
 * <p>A KMS that says that it is asked too often is well. It opens no circuit, and is asked until
 * the deadline, each time after a wait of any length up to the back-off's: clients that it refused
 * in the same moment must not come back together.
 */
public final class Resilience {
  /**
   * Each wait is longer or shorter by up to this part of it, so that clients do not come in step.
   */
  private static final double JITTER = 0.25;

  private static final int UNLIMITED = 0;

  /** A call has at least this part of the deadline for its answer, after it waited for its turn. */
  private static final int LEAST_TIME = 3;

  /** Failsafe's own thread would have the first session for ever. */
  private static final ScheduledThreadPoolExecutor TIMER =
      DaemonThreads.timer("iceberg-crypto-kms-timer");

  /** What all clients of this JVM share that ask the same KMS, with the same limit. */
  private static final ConcurrentMap<Pace, Turns> TURNS = new ConcurrentHashMap<>();

  private record Pace(String kms, int callsPerSecond) {}

  /**
   * Lets one call through after another, evenly. Only the first in line has a permit reserved, so
   * that a call which is cancelled leaves no gap.
   */
  private static final class Turns {
    private final ReentrantLock line = new ReentrantLock(true);
    private final RateLimiter<Object> limiter;

    Turns(Pace pace) {
      long interval = Math.max(1, TimeUnit.SECONDS.toNanos(1) / pace.callsPerSecond());
      this.limiter = RateLimiter.smoothBuilder(Duration.ofNanos(interval)).build();
    }

    /** Waits for a turn; false at once, or later, when it does not come in time. */
    boolean await(long nanos) throws InterruptedException {
      long end = System.nanoTime() + nanos;
      long toWait = line.getQueueLength() * limiter.getConfig().getMaxRate().toNanos();
      if (toWait > nanos || !line.tryLock(nanos, TimeUnit.NANOSECONDS)) {
        return false;
      }

      try {
        return limiter.tryAcquirePermit(Duration.ofNanos(Math.max(0, end - System.nanoTime())));
      } finally {
        line.unlock();
      }
    }
  }

  /** A call whose turn comes too late. */
  private static final class NoTurnException extends RuntimeException {
    private static final long serialVersionUID = 1L;
  }

  /** What a catalog's properties say about it; travels to executors. Times are in milliseconds. */
  public record Limits(
      int maxCallsPerSecond,
      int maxAttempts,
      long initialDelayMs,
      long maxDelayMs,
      long deadlineMs,
      long callTimeoutMs,
      int breakerFailures,
      long breakerDelayMs)
      implements Serializable {

    /**
     * Reads the properties.
     *
     * @throws InvalidConfigurationException when one is not a number, or too small
     */
    public static Limits of(Map<String, String> properties) {
      PropertyReader reader = new PropertyReader(properties);
      long initialDelay = reader.millis(KmsProperties.RETRY_INITIAL_DELAY_MS, 200);
      return new Limits(
          reader.count(
              KmsProperties.MAX_CALLS_PER_SECOND,
              UNLIMITED,
              1,
              "a number of calls a second, 1 or more",
              "100"),
          reader.count(
              KmsProperties.RETRY_MAX_ATTEMPTS, 5, 1, "a number of attempts, 1 or more", "5"),
          initialDelay,
          Math.max(initialDelay, reader.millis(KmsProperties.RETRY_MAX_DELAY_MS, 5_000)),
          reader.millis(KmsProperties.RETRY_TIMEOUT_MS, 30_000),
          reader.millis(KmsProperties.CALL_TIMEOUT_MS, KmsProperties.CALL_TIMEOUT_MS_DEFAULT),
          reader.count(
              KmsProperties.BREAKER_FAILURES, 5, 0, "a number of failures, 0 or more", "5"),
          reader.millis(KmsProperties.BREAKER_DELAY_MS, 10_000));
    }
  }

  private final Limits limits;
  private final Breakers breakers;
  private final FailsafeExecutor<Object> executor;
  private final FailsafeExecutor<Object> timed; // each attempt; null: the client does it

  /**
   * Takes the limits.
   *
   * @param limited whether the client keeps to the time limit of a call in each of its requests; an
   *     attempt then ends with them, or with the deadline
   */
  public Resilience(Limits limits, KmsMetrics metrics, boolean limited) {
    this.limits = limits;
    this.breakers = limits.breakerFailures() == 0 ? null : new Breakers(limits);
    List<Policy<Object>> policies = new ArrayList<>(); // from the outermost to the innermost
    policies.add(Timeout.builder(Duration.ofMillis(limits.deadlineMs())).withInterrupt().build());
    if (limits.maxAttempts() > 1) {
      policies.add(retryThrottled(limits, metrics));
    }

    policies.add(retry(limits, metrics));
    this.executor = Failsafe.with(policies).with(TIMER);
    this.timed =
        limited
            ? null
            : Failsafe.with(
                    Timeout.builder(Duration.ofMillis(limits.callTimeoutMs()))
                        .withInterrupt()
                        .build())
                .with(TIMER);
  }

  /**
   * Asks the KMS, again where that may help.
   *
   * @param attempt one call of the KMS
   * @param kms how errors name the KMS
   * @param keyId the master key that it is about, for errors
   * @throws KmsUnavailableException when no attempt came through
   */
  public <T> T call(Supplier<T> attempt, String kms, String keyId) {
    if (breakers != null) {
      breakers.enter(kms, keyId);
    }

    Supplier<T> timely = timed == null ? attempt : () -> timed.get(attempt::get);
    Attempts attempts = new Attempts(limits, turns(kms));
    try {
      T answer = executor.get(() -> attempts.next(timely));
      answered(keyId);
      return answer;
    } catch (KmsUnavailableException e) {
      unavailable(keyId, e);
      throw e;
    } catch (TimeoutExceededException e) {
      RuntimeException last = attempts.failure();
      unavailable(keyId, last == null ? e : last);
      throw isThrottled(last)
          ? throttled(kms, keyId, (KmsUnavailableException) last, e)
          : tooSlow(kms, keyId, attempts.told, e);
    } catch (NoTurnException e) {
      RuntimeException last = attempts.failure();
      if (last == null) {
        untold(keyId);
      } else {
        unavailable(keyId, last);
      }

      throw overLimit(kms, keyId, attempts.told);
    } catch (FailsafeException e) {
      untold(keyId); // interrupted while it waited for the next attempt, or the limit
      throw new KmsUnavailableException(
          String.format("%s: the call for key '%s' was interrupted", kms, keyId),
          "The query or task was cancelled.",
          e);
    } catch (RuntimeException | Error e) {
      answered(keyId);
      throw e;
    }
  }

  /**
   * Remembers how the last attempt ended by itself. The deadline over all of them has no cause, and
   * the attempt that it cuts short says nothing: the one before shows whether the KMS was reached.
   */
  private static final class Attempts {
    private final long start = System.nanoTime();
    private final long deadlineNanos;
    private final long callNanos; // what a call needs of it
    private final Turns turns; // null: there is no limit
    private volatile RuntimeException failure;
    private volatile IcebergCryptoException told; // the last failure that no time limit made

    Attempts(Limits limits, Turns turns) {
      this.deadlineNanos = TimeUnit.MILLISECONDS.toNanos(limits.deadlineMs());
      this.callNanos =
          Math.min(
              TimeUnit.MILLISECONDS.toNanos(limits.callTimeoutMs()), deadlineNanos / LEAST_TIME);
      this.turns = turns;
    }

    /**
     * Makes one, when the limit lets it through.
     *
     * @throws NoTurnException when it would not in time for an answer before the deadline
     */
    <T> T next(Supplier<T> attempt) {
      if (turns != null) {
        waitForTurn();
      }

      try {
        return attempt.get();
      } catch (RuntimeException e) {
        if (System.nanoTime() - start < deadlineNanos) {
          this.failure = e;
          if (!Thread.currentThread().isInterrupted() && e instanceof IcebergCryptoException told) {
            this.told = told;
          }
        }

        throw e;
      }
    }

    private void waitForTurn() {
      long left = deadlineNanos - (System.nanoTime() - start) - callNanos;
      try {
        if (!turns.await(Math.max(0, left))) {
          throw new NoTurnException();
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FailsafeException(e); // as of a wait for the next attempt
      }
    }

    /** Null when no attempt failed before the deadline. */
    RuntimeException failure() {
      return failure;
    }
  }

  private void answered(String keyId) {
    if (breakers != null) {
      breakers.answered(keyId);
    }
  }

  private void unavailable(String keyId, Throwable failure) {
    if (Thread.currentThread().isInterrupted()) {
      untold(keyId);
    } else if (failure instanceof KmsUnavailableException answer && answer.isOfWrappedKey()) {
      answered(keyId);
    } else if (breakers != null && isThrottled(failure)) {
      breakers.throttled(keyId);
    } else if (breakers != null) {
      breakers.failed(keyId, failure);
    }
  }

  private void untold(String keyId) {
    if (breakers != null) {
      breakers.untold(keyId);
    }
  }

  private Turns turns(String kms) {
    return limits.maxCallsPerSecond() == UNLIMITED
        ? null
        : TURNS.computeIfAbsent(new Pace(kms, limits.maxCallsPerSecond()), Turns::new);
  }

  private KmsUnavailableException overLimit(
      String kms, String keyId, IcebergCryptoException before) {
    return new KmsUnavailableException(
        String.format(
            "%s was not called for key '%s': too many calls wait for %s=%d already%s",
            kms,
            keyId,
            KmsProperties.MAX_CALLS_PER_SECOND,
            limits.maxCallsPerSecond(),
            earlier(before)),
        String.format(
            "Its turn would have come too late for the %d ms of %s. Do less at once, or raise"
                + " either.",
            limits.deadlineMs(), KmsProperties.RETRY_TIMEOUT_MS));
  }

  private KmsUnavailableException throttled(
      String kms, String keyId, KmsUnavailableException last, TimeoutExceededException e) {
    return new KmsUnavailableException(
            String.format(
                "%s could not be asked for key '%s' for %d ms because of a limit of calls: %s",
                kms, keyId, limits.deadlineMs(), last.problem()),
            String.format(
                "%s To ask less often, set %s; to wait for longer, %s.",
                last.hint(), KmsProperties.MAX_CALLS_PER_SECOND, KmsProperties.RETRY_TIMEOUT_MS),
            e)
        .throttledIf(true);
  }

  private static String earlier(IcebergCryptoException before) {
    return before == null ? "" : "; an earlier attempt failed: " + before.problem();
  }

  /** What an attempt before said is the reason, where there was one: a login service, say. */
  private KmsUnavailableException tooSlow(
      String kms, String keyId, IcebergCryptoException before, TimeoutExceededException e) {
    return new KmsUnavailableException(
        String.format(
            "%s did not answer for key '%s' in time (%d ms a call, %d ms in all)%s",
            kms, keyId, limits.callTimeoutMs(), limits.deadlineMs(), earlier(before)),
        "Check the KMS's load and the network; the times are "
            + KmsProperties.CALL_TIMEOUT_MS
            + " and "
            + KmsProperties.RETRY_TIMEOUT_MS
            + ".",
        e);
  }

  /** The breaker of the way to the KMS ({@link Breakers#circuit}), or {@code off}. */
  public String circuit() {
    return breakers == null ? "off" : breakers.circuit();
  }

  /** How many master keys are being left alone. */
  public int keysLeftAlone() {
    return breakers == null ? 0 : breakers.keysLeftAlone();
  }

  private static RetryPolicy<Object> retryThrottled(Limits limits, KmsMetrics metrics) {
    return RetryPolicy.builder()
        .handleIf(e -> isThrottled(e) && !Thread.currentThread().isInterrupted())
        .withMaxAttempts(-1) // until the deadline
        .withDelayFn(
            context -> {
              double doubled = limits.initialDelayMs() * Math.pow(2, context.getAttemptCount() - 1);
              double longest = Math.min(limits.maxDelayMs(), doubled);
              return Duration.ofNanos(
                  (long) (ThreadLocalRandom.current().nextDouble() * longest * 1e6));
            })
        .onRetry(event -> metrics.add(KmsMetrics.Count.RETRIES, 1))
        .build();
  }

  private static boolean isThrottled(Throwable failure) {
    return failure instanceof KmsUnavailableException answer && answer.isThrottled();
  }

  private static RetryPolicy<Object> retry(Limits limits, KmsMetrics metrics) {
    RetryPolicyBuilder<Object> builder =
        RetryPolicy.builder()
            .handleIf(Resilience::isTransient)
            .withMaxAttempts(limits.maxAttempts())
            .withJitter(JITTER)
            .onRetry(event -> metrics.add(KmsMetrics.Count.RETRIES, 1));
    if (limits.maxDelayMs() > limits.initialDelayMs()) {
      builder.withBackoff(
          Duration.ofMillis(limits.initialDelayMs()), Duration.ofMillis(limits.maxDelayMs()));
    } else {
      builder.withDelay(Duration.ofMillis(limits.initialDelayMs()));
    }

    return builder.build();
  }

  /** Whether to try again. Not for a thread that was interrupted from outside: its task is over. */
  private static boolean isTransient(Throwable failure) {
    return failure instanceof TimeoutExceededException
        || failure instanceof KmsUnavailableException
            && !isThrottled(failure)
            && !Thread.currentThread().isInterrupted();
  }
}
