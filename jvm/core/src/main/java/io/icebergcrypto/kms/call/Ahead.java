package io.icebergcrypto.kms.call;

import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** What is begun before anybody needs it, on threads of its own. */
public final class Ahead {
  private static final int MAX_THREADS = 16;

  private static final ThreadPoolExecutor THREADS =
      new ThreadPoolExecutor(
          0,
          MAX_THREADS,
          10,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          new DaemonThreads("iceberg-crypto-kms-ahead"),
          new ThreadPoolExecutor.DiscardPolicy());

  private Ahead() {}

  /** Begins work, unless as much is under way as there are threads: then nothing is done. */
  public static void begin(Runnable work) {
    THREADS.execute(work);
  }
}
