package io.icebergcrypto.kms.call;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/**
 * Makes threads that do not keep the JVM from its end. They have nothing of the thread that needed
 * them first: Spark's active session is an inherited thread local, and a session's jars are behind
 * its context class loader.
 */
public record DaemonThreads(String name) implements ThreadFactory {
  /** Not of the JVM's shared pool, which may be busy with Spark's work, or with a user's. */
  private static final ScheduledThreadPoolExecutor LATER = timer("iceberg-crypto-kms-later");

  /** Work that may raise an error. */
  @FunctionalInterface
  public interface Work<T, E extends Exception> {
    T run() throws E;
  }

  /** One such thread for what is done later; it does not keep what is cancelled before. */
  public static ScheduledThreadPoolExecutor timer(String name) {
    ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, new DaemonThreads(name));
    timer.setRemoveOnCancelPolicy(true);
    return timer;
  }

  /** Runs short work after that many milliseconds; nothing that correctness hangs on. */
  public static void later(long ms, Runnable work) {
    LATER.schedule(work, ms, TimeUnit.MILLISECONDS);
  }

  /**
   * Does work on this thread with another context class loader, by which libraries find classes.
   * The thread does not keep it.
   */
  public static <T, E extends Exception> T withLoader(ClassLoader loader, Work<T, E> work)
      throws E {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(loader);
    try {
      return work.run();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  @Override
  public Thread newThread(Runnable work) {
    Thread thread = new Thread(null, work, name, 0, /* inheritThreadLocals= */ false);
    thread.setContextClassLoader(DaemonThreads.class.getClassLoader());
    thread.setDaemon(true);
    return thread;
  }
}
