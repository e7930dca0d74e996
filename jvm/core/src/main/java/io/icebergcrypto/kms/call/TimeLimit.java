package io.icebergcrypto.kms.call;

import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import java.io.Serializable;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * How long one call of a KMS, or one login, may take.
 *
 * @param ms in milliseconds
 */
public record TimeLimit(long ms) implements Serializable {
  /** What a catalog's properties say, or ten seconds. */
  public static TimeLimit of(PropertyReader properties) {
    return new TimeLimit(
        properties.millis(KmsProperties.CALL_TIMEOUT_MS, KmsProperties.CALL_TIMEOUT_MS_DEFAULT));
  }

  public Duration duration() {
    return Duration.ofMillis(ms);
  }

  /**
   * The part of it that making a connection may take. With all of it, a KMS that cannot be reached
   * would look like one that does not answer.
   */
  public Duration toConnect() {
    return duration().dividedBy(3);
  }

  /**
   * Waits for an answer.
   *
   * @param problem what to say when there is no answer, such as "Vault at x did not answer"
   * @throws KmsUnavailableException when it does not come in time, or this thread is interrupted
   * @throws ExecutionException what the call threw
   */
  public <T> T await(Future<T> answer, String problem) throws ExecutionException {
    try {
      return answer.get(ms, TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      throw exceeded(problem, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw interrupted(problem, e);
    }
  }

  /**
   * Works while no other thread does.
   *
   * @param problem what to say when another one takes too long
   * @throws KmsUnavailableException when it does, or this thread is interrupted
   */
  public <T> T alone(ReentrantLock lock, String problem, Supplier<T> work) {
    try {
      if (!lock.tryLock(ms, TimeUnit.MILLISECONDS)) {
        throw exceeded(problem, null);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw interrupted(problem, e);
    }

    try {
      return work.get();
    } finally {
      lock.unlock();
    }
  }

  /** The error when the time is over. */
  public KmsUnavailableException exceeded(String problem, Throwable cause) {
    return new KmsUnavailableException(
        String.format("%s within %d ms", problem, ms),
        "Check the network and the KMS's load; " + KmsProperties.CALL_TIMEOUT_MS + " is the limit.",
        cause);
  }

  /** The error when the thread that waits is interrupted. */
  public static KmsUnavailableException interrupted(String problem, Throwable cause) {
    return new KmsUnavailableException(
        problem + ": the call was interrupted",
        "The query was cancelled, or the call took too long: " + KmsProperties.CALL_TIMEOUT_MS,
        cause);
  }
}
