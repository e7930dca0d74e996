package io.icebergcrypto.kms.call;

import io.icebergcrypto.KmsUnavailableException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Calls with a time limit into a library that no interrupt reaches: they run in threads of their
 * own, and one that hangs is left behind.
 */
public final class TimedCalls {
  /** When this many calls hang, no more are made. */
  private static final int MAX_THREADS = 64;

  private final ExecutorService pool;

  /**
   * Makes a pool without threads.
   *
   * @param name of its threads
   */
  public TimedCalls(String name) {
    this.pool =
        new ThreadPoolExecutor(
            0,
            MAX_THREADS,
            30,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            new DaemonThreads(name));
  }

  /**
   * Makes a call.
   *
   * @param problem what to say when it does not come back, such as "the login did not finish"
   * @throws KmsUnavailableException when it does not come back in time
   * @throws ExecutionException what it throws
   */
  public <T> T within(TimeLimit limit, String problem, Callable<T> call) throws ExecutionException {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Future<T> running;
    try {
      running = pool.submit(() -> DaemonThreads.withLoader(loader, call::call));
    } catch (RejectedExecutionException e) {
      throw new KmsUnavailableException(
          String.format("%s: %d calls are hanging", problem, MAX_THREADS),
          "Check that the KMS is up and can be reached, and start a new Spark process.",
          e);
    }

    return limit.await(running, problem);
  }
}
