package io.icebergcrypto.kms.call;

import dev.failsafe.Failsafe;
import dev.failsafe.FailsafeException;
import dev.failsafe.FailsafeExecutor;
import dev.failsafe.Policy;
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
import java.util.Objects;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * How this JVM asks one KMS: a time limit for each attempt or request, attempts again when the KMS
 * is unavailable (exponential back-off with jitter), circuit breakers that leave a key or a dead
 * KMS alone ({@link Breakers}), and a deadline over everything. The policies are Failsafe's.
 *
 * <p>Only {@link KmsUnavailableException} is tried again and opens a circuit. A refusal (a missing
 * key, a wrong password) is the KMS's answer, and asking again could even lock an account.
 */
public final class Resilience {
  /**
   * Each wait is longer or shorter by up to this part of it, so that clients do not come in step.
   */
  private static final double JITTER = 0.25;

  /** Failsafe's own thread would have the first session for ever. */
  private static final ScheduledThreadPoolExecutor TIMER =
      DaemonThreads.timer("iceberg-crypto-kms-timer");

  /** What a catalog's properties say about it; travels to executors. Times are in milliseconds. */
  public record Limits(
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
    policies.add(retry(limits, metrics));
    if (!limited) {
      policies.add(
          Timeout.builder(Duration.ofMillis(limits.callTimeoutMs())).withInterrupt().build());
    }

    this.executor = Failsafe.with(policies).with(TIMER);
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

    Attempts attempts = new Attempts(limits.deadlineMs());
    try {
      T answer = executor.get(() -> attempts.next(attempt));
      answered(keyId);
      return answer;
    } catch (KmsUnavailableException e) {
      unavailable(keyId, e);
      throw e;
    } catch (TimeoutExceededException e) {
      unavailable(keyId, Objects.requireNonNullElse(attempts.failure(), e));
      throw tooSlow(kms, keyId, attempts.told, e);
    } catch (FailsafeException e) {
      unavailable(keyId, e); // interrupted while it waited for the next attempt
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
    private volatile RuntimeException failure;
    private volatile IcebergCryptoException told; // the last failure that no time limit made

    Attempts(long deadlineMs) {
      this.deadlineNanos = TimeUnit.MILLISECONDS.toNanos(deadlineMs);
    }

    <T> T next(Supplier<T> attempt) {
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
    if (breakers != null) {
      breakers.failed(keyId, failure);
    }
  }

  /** What an attempt before said is the reason, where there was one: a login service, say. */
  private KmsUnavailableException tooSlow(
      String kms, String keyId, IcebergCryptoException before, TimeoutExceededException e) {
    return new KmsUnavailableException(
        String.format(
            "%s did not answer for key '%s' in time (%d ms a call, %d ms in all)%s",
            kms,
            keyId,
            limits.callTimeoutMs(),
            limits.deadlineMs(),
            before == null ? "" : "; an earlier attempt failed: " + before.problem()),
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

  private static RetryPolicy<Object> retry(Limits limits, KmsMetrics metrics) {
    RetryPolicyBuilder<Object> builder =
        RetryPolicy.builder()
            .handleIf(Resilience::isTransient)
            .withMaxAttempts(limits.maxAttempts())
            .withJitter(JITTER)
            .onRetry(event -> metrics.retried());
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
        || (failure instanceof KmsUnavailableException && !Thread.currentThread().isInterrupted());
  }
}
