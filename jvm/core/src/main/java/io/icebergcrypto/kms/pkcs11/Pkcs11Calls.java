package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.config.KmsProperties;
import java.io.Serializable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * Calls into a PKCS#11 library with a time limit. They are native code, which no interrupt reaches:
 * so they run in threads of their own, and one that hangs is left behind.
 *
 * @param timeoutMs how long a call may take, in milliseconds
 */
public record Pkcs11Calls(long timeoutMs) implements Serializable {
  private static final long serialVersionUID = 1L;

  /** So many calls may hang before none is made any more. */
  private static final int MAX_THREADS = 64;

  private static final AtomicInteger THREADS = new AtomicInteger();
  private static final ExecutorService POOL =
      new ThreadPoolExecutor(
          0, MAX_THREADS, 30, TimeUnit.SECONDS, new SynchronousQueue<>(), Pkcs11Calls::thread);

  /**
   * Makes a call.
   *
   * @param token for the error
   * @param doing what it is for, for the error
   * @throws KmsUnavailableException when it does not come back in time; else what it throws
   */
  public <T> T within(String token, String doing, Supplier<T> call) {
    Future<T> running;
    try {
      running = POOL.submit(call::get);
    } catch (RejectedExecutionException e) {
      throw new KmsUnavailableException(
          String.format("%s could not %s: %d calls hang in it", token, doing, MAX_THREADS),
          "Check that the HSM is up and reachable, and start a new Spark process.",
          e);
    }

    try {
      return running.get(timeoutMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      throw new KmsUnavailableException(
          String.format("%s could not %s: no answer within %d ms", token, doing, timeoutMs),
          "Check that the HSM is up and reachable; "
              + KmsProperties.CALL_TIMEOUT_MS
              + " is the limit.",
          e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new KmsUnavailableException(
          String.format("%s could not %s: this thread was interrupted", token, doing),
          "Was the task cancelled?",
          e);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof RuntimeException cause) {
        throw cause;
      }

      if (e.getCause() instanceof Error cause) {
        throw cause;
      }

      throw new IllegalStateException(e.getCause()); // a Supplier throws no other
    }
  }

  private static Thread thread(Runnable task) {
    Thread thread = new Thread(task, "iceberg-crypto-pkcs11-" + THREADS.incrementAndGet());
    thread.setDaemon(true);
    return thread;
  }
}
