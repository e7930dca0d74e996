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
  private int done;

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
    try {
      for (int i = 0; i < count; i++) {
        int index = i;
        pool.execute(AsCaller.bound(() -> work(index, work)));
      }
    } catch (RuntimeException | Error e) { // there can be no more threads
      stop(e);
    }

    pool.shutdown();
    await(pool);
    CancelledException.check();
    if (failure instanceof Error error) {
      throw error;
    } else if (failure instanceof RuntimeException error) {
      throw error;
    } else if (failure != null || done < count) {
      throw new IllegalStateException("A thread has ended before its work", failure);
    }
  }

  private void work(int index, IntConsumer work) {
    if (!begin()) {
      return;
    }

    try {
      work.accept(index);
      end(1);
    } catch (Throwable e) { // a checked one of Scala's, too
      stop(e);
      end(0);
    }
  }

  private synchronized boolean begin() {
    return failure == null && atWork.add(Thread.currentThread());
  }

  private synchronized void end(int parts) {
    done += parts;
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
