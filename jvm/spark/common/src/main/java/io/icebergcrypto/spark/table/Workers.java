package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.kms.call.DaemonThreads;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;

/** Threads that do the parts of one call, and all end before it does. */
final class Workers {
  private final Set<Thread> atWork = new HashSet<>();
  private Throwable failure;

  private Workers() {}

  /**
   * Does parts.
   *
   * @param count how many
   * @param threads how many at once
   * @param work does the part of a number; an error of one stops the others, and is thrown
   * @throws CancelledException when the call was cancelled; what was begun has ended
   */
  static void run(int count, int threads, IntConsumer work) {
    new Workers().all(count, threads, work);
  }

  private void all(int count, int threads, IntConsumer work) {
    CancelledException.check();
    ExecutorService pool =
        Executors.newFixedThreadPool(
            Math.min(count, threads), new DaemonThreads("iceberg-crypto-tables"));
    for (int i = 0; i < count; i++) {
      int index = i;
      pool.execute(AsCaller.bound(() -> work(index, work)));
    }

    pool.shutdown();
    await(pool);
    CancelledException.check();
    if (failure instanceof Error error) {
      throw error;
    } else if (failure != null) {
      throw (RuntimeException) failure;
    }
  }

  private void work(int index, IntConsumer work) {
    if (!begin()) {
      return;
    }

    try {
      work.accept(index);
    } catch (RuntimeException | Error e) {
      stop(e);
    } finally {
      end();
    }
  }

  private synchronized boolean begin() {
    return failure == null && atWork.add(Thread.currentThread());
  }

  private synchronized void end() {
    atWork.remove(Thread.currentThread());
    CancelledException.ended(); // the thread does other parts
  }

  private synchronized void stop(Throwable reason) {
    if (failure == null) {
      this.failure = reason;
      atWork.forEach(CancelledException::cancel);
    }
  }

  /** A cancel of the call is one of all that it has begun; what cannot be undone ends first. */
  private void await(ExecutorService pool) {
    boolean interrupted = false;
    boolean ended = false;
    while (!ended) {
      try {
        ended = pool.awaitTermination(1, TimeUnit.DAYS);
      } catch (InterruptedException e) {
        interrupted = true;
        stop(e);
      }
    }

    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
