package io.icebergcrypto.kms.call;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;

/**
 * Makes threads that do not keep the JVM from its end. They have nothing of the thread that needed
 * them first: Spark's active session is an inherited thread local, and a session's jars are behind
 * its context class loader.
 */
public record DaemonThreads(String name) implements ThreadFactory {
  /** One such thread for what is done later; it does not keep what is cancelled before. */
  public static ScheduledThreadPoolExecutor timer(String name) {
    ScheduledThreadPoolExecutor timer =
        new ScheduledThreadPoolExecutor(1, new DaemonThreads(name));
    timer.setRemoveOnCancelPolicy(true);
    return timer;
  }

  @Override
  public Thread newThread(Runnable work) {
    Thread thread = new Thread(null, work, name, 0, /* inheritThreadLocals= */ false);
    thread.setContextClassLoader(DaemonThreads.class.getClassLoader());
    thread.setDaemon(true);
    return thread;
  }
}
