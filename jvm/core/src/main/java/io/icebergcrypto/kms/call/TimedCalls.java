package io.icebergcrypto.kms.call;

import io.icebergcrypto.KmsUnavailableException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Calls with a time limit into a library that no interrupt reaches: they run in threads of their
 * own, and one that hangs is left behind.
 */
public final class TimedCalls {
  /** As many calls are made at a time. When all of them hang, no more are made. */
  private static final int MAX_CALLS = 64;

  private final Semaphore places = new Semaphore(MAX_CALLS);
  private final ExecutorService pool;

  /**
   * Makes a pool without threads.
   *
   * @param name of its threads
   */
  public TimedCalls(String name) {
    this(new DaemonThreads(name));
  }

  TimedCalls(ThreadFactory threads) {
    this.pool =
        new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, 30, TimeUnit.SECONDS, new SynchronousQueue<>(), threads);
  }

  /**
   * Makes a call, after waiting for a place for as long as it may take itself.
   *
   * @param problem what to say when it does not come back, such as "the login did not finish"
   * @throws KmsUnavailableException when it does not come back in time
   * @throws ExecutionException what it throws
   */
  public <T> T within(TimeLimit limit, String problem, Callable<T> call) throws ExecutionException {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    takePlace(limit, problem);
    Future<T> running;
    try {
      running =
          pool.submit(
              () -> {
                try {
                  return DaemonThreads.withLoader(loader, call::call);
                } finally {
                  places.release();
                }
              });
    } catch (RuntimeException | Error e) { // no more threads can be started
      places.release();
      throw e;
    }

    return limit.await(running, problem);
  }

  private void takePlace(TimeLimit limit, String problem) {
    try {
      if (!places.tryAcquire(limit.ms(), TimeUnit.MILLISECONDS)) {
        throw new KmsUnavailableException(
            String.format("%s: %d calls are hanging", problem, MAX_CALLS),
            "Check that the KMS is up and can be reached, and start a new Spark process.");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw TimeLimit.interrupted(problem, e);
    }
  }
}
