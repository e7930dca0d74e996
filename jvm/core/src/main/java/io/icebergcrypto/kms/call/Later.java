package io.icebergcrypto.kms.call;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * What is done after a while: on a thread of its own, for the JVM's shared pool may be busy with
 * Spark's work, or with a user's, for as long as that takes.
 */
public final class Later {
  private static final ScheduledThreadPoolExecutor THREAD =
      DaemonThreads.timer("iceberg-crypto-kms-later");

  private Later() {}

  /** Runs short work after that many milliseconds; nothing that correctness hangs on. */
  public static void after(long ms, Runnable work) {
    THREAD.schedule(work, ms, TimeUnit.MILLISECONDS);
  }
}
