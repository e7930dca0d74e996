package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.kms.call.DaemonThreads;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Threads that do the parts of one call, and all end before it does. After an error no part begins,
 * and those that have begun end as they would; a cancel of the call, or of a part, cancels them.
 */
public final class Workers {
  private final ExecutorService pool;
  private final Semaphore free;
  private final Set<Thread> atWork = new HashSet<>();
  private Throwable failure;
  private int begun;
  private int done;

  private Workers(int threads) {
    this.pool = Executors.newFixedThreadPool(threads, new DaemonThreads("iceberg-crypto-parts"));
    this.free = new Semaphore(threads);
  }

  /**
   * Does parts, the first error of which is thrown.
   *
   * @param threads how many at once
   * @param giver gives one part after another to {@link #begin}
   * @throws CancelledException when the call was cancelled; what was begun has ended
   */
  public static void run(int threads, Consumer<Workers> giver) {
    CancelledException.check();
    new Workers(threads).all(giver);
  }

  /**
   * Begins a part as soon as a thread is free for it, which inherits what Spark knows of this one.
   *
   * @throws IllegalStateException after an error of another part, which {@link #run} throws
   */
  public void begin(Runnable part) {
    try {
      free.acquire();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      CancelledException.rethrow(e);
    }

    CancelledException.check();
    synchronized (this) {
      if (failure != null) {
        throw new IllegalStateException("Another part has failed", failure);
      }

      begun++;
    }

    pool.execute(AsCaller.bound(() -> work(part)));
  }

  private void all(Consumer<Workers> giver) {
    try {
      giver.accept(this);
    } catch (RuntimeException | Error e) { // or there can be no more threads
      fail(e);
    }

    pool.shutdown();
    await();
    CancelledException.check();
    if (failure instanceof Error error) {
      throw error;
    } else if (failure instanceof RuntimeException error) {
      throw error;
    } else if (failure != null || done < begun) {
      throw new IllegalStateException("A thread has ended before its work", failure);
    }
  }

  private void work(Runnable part) {
    begun(Thread.currentThread());
    try {
      CancelledException.check();
      part.run();
      end(1);
    } catch (Throwable e) { // a checked one of Scala's, too
      fail(cancelOr(e));
      end(0);
    }
  }

  private static Throwable cancelOr(Throwable failure) {
    try {
      CancelledException.rethrow(failure);
      return failure;
    } catch (CancelledException cancel) {
      return cancel;
    }
  }

  private synchronized void begun(Thread thread) {
    atWork.add(thread);
    if (failure instanceof CancelledException) {
      CancelledException.cancel(thread);
    }
  }

  private synchronized void end(int parts) {
    done += parts;
    atWork.remove(Thread.currentThread());
    CancelledException.ended(); // the thread does other parts
    free.release();
  }

  private synchronized void fail(Throwable reason) {
    if (failure == null) {
      this.failure = reason;
    }

    if (reason instanceof CancelledException) {
      atWork.forEach(CancelledException::cancel);
    }
  }

  /** A cancel of the call is one of all that it has begun; what cannot be undone ends first. */
  private void await() {
    boolean interrupted = false;
    boolean ended = false;
    while (!ended) {
      try {
        ended = pool.awaitTermination(1, TimeUnit.DAYS);
      } catch (InterruptedException e) {
        interrupted = true;
        cancelAll();
      }
    }

    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized void cancelAll() {
    atWork.forEach(CancelledException::cancel);
  }
}
