package io.icebergcrypto.kms;

import dev.failsafe.CircuitBreaker;
import dev.failsafe.CircuitBreakerOpenException;
import dev.failsafe.Failsafe;
import dev.failsafe.FailsafeExecutor;
import dev.failsafe.Policy;
import dev.failsafe.RetryPolicy;
import dev.failsafe.RetryPolicyBuilder;
import dev.failsafe.Timeout;
import dev.failsafe.TimeoutExceededException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import java.io.Serializable;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;

/**
 * How this JVM asks one KMS: a time limit for each attempt, attempts again when the KMS is
 * unavailable (exponential back-off with jitter), a circuit breaker that leaves a dead KMS alone,
 * and a deadline over everything. The policies are Failsafe's.
 *
 * <p>Only {@link KmsUnavailableException} is tried again and opens the circuit. A refusal (a
 * missing key, a wrong password) is the KMS's answer, and asking again could even lock an account.
 */
final class Resilience {
  /**
   * Each wait is longer or shorter by up to this part of it, so that clients do not come in step.
   */
  private static final double JITTER = 0.25;

  /** What a catalog's properties say of it; travels to executors. Times are in milliseconds. */
  record Limits(
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
     * @throws InvalidConfigurationException when one is no number, or too small
     */
    static Limits of(Map<String, String> properties) {
      Settings settings = new Settings(properties);
      long initialDelay = settings.millis(KmsProperties.RETRY_INITIAL_DELAY_MS, 200);
      return new Limits(
          (int)
              settings.number(
                  KmsProperties.RETRY_MAX_ATTEMPTS, 5, 1, "a number of attempts, 1 or more", "5"),
          initialDelay,
          Math.max(initialDelay, settings.millis(KmsProperties.RETRY_MAX_DELAY_MS, 5_000)),
          settings.millis(KmsProperties.RETRY_TIMEOUT_MS, 30_000),
          settings.millis(KmsProperties.CALL_TIMEOUT_MS, KmsProperties.CALL_TIMEOUT_MS_DEFAULT),
          (int)
              settings.number(
                  KmsProperties.BREAKER_FAILURES, 5, 0, "a number of failures, 0 or more", "5"),
          settings.millis(KmsProperties.BREAKER_DELAY_MS, 10_000));
    }
  }

  private final Limits limits;
  private final CircuitBreaker<Object> breaker;
  private final FailsafeExecutor<Object> executor;

  Resilience(Limits limits, KmsMetrics metrics) {
    this.limits = limits;
    List<Policy<Object>> policies = new ArrayList<>(); // from the outermost to the innermost
    // Outermost: it counts calls, not attempts. Otherwise a blip that meets many tasks at once
    // would
    // open it before any of them has tried again.
    this.breaker = limits.breakerFailures() == 0 ? null : breaker(limits);
    if (breaker != null) {
      policies.add(breaker);
    }

    policies.add(Timeout.builder(Duration.ofMillis(limits.deadlineMs())).withInterrupt().build());
    policies.add(retry(limits, metrics));
    policies.add(
        Timeout.builder(Duration.ofMillis(limits.callTimeoutMs())).withInterrupt().build());
    this.executor = Failsafe.with(policies);
  }

  /**
   * Asks the KMS, again where that may help.
   *
   * @param attempt one call of the KMS
   * @param kms how errors name the KMS
   * @param keyId the master key that it is about, for errors
   * @throws KmsUnavailableException when no attempt came through
   */
  <T> T call(Supplier<T> attempt, String kms, String keyId) {
    try {
      return executor.get(attempt::get);
    } catch (CircuitBreakerOpenException e) {
      throw new KmsUnavailableException(
          String.format(
              "%s was not asked for key '%s': its last %d calls failed, and it is left alone for"
                  + " %d ms more",
              kms, keyId, limits.breakerFailures(), breaker.getRemainingDelay().toMillis()),
          "Check that the KMS runs and can be reached; `iceberg-crypto doctor` tells what is wrong."
              + " Keys in the cache are still served.",
          e);
    } catch (TimeoutExceededException e) {
      throw new KmsUnavailableException(
          String.format(
              "%s did not answer for key '%s' in time (%d ms a call, %d ms in all)",
              kms, keyId, limits.callTimeoutMs(), limits.deadlineMs()),
          "Check the KMS's load and the network; the times are "
              + KmsProperties.CALL_TIMEOUT_MS
              + " and "
              + KmsProperties.RETRY_TIMEOUT_MS
              + ".",
          e);
    }
  }

  /**
   * Whether the KMS is being left alone: {@code closed} (it is asked), {@code open}, {@code
   * half_open}.
   */
  String circuit() {
    return breaker == null ? "off" : breaker.getState().name().toLowerCase(Locale.ROOT);
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

  private static CircuitBreaker<Object> breaker(Limits limits) {
    return CircuitBreaker.builder()
        .handleIf(Resilience::isTransient)
        .withFailureThreshold(limits.breakerFailures())
        .withDelay(Duration.ofMillis(limits.breakerDelayMs()))
        .build();
  }

  private static boolean isTransient(Throwable failure) {
    return failure instanceof KmsUnavailableException
        || failure instanceof TimeoutExceededException;
  }
}
