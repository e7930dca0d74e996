package io.icebergcrypto.spark.table;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.kms.call.AsCaller;
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
    this.pool = Executors.newFixedThreadPool(threads, Workers::newThread);
    this.free = new Semaphore(threads);
  }

  /**
   * One that inherits Spark's local properties, and so ends with the jobs of a group that is
   * cancelled. It is made for this call alone.
   */
  private static Thread newThread(Runnable work) {
    Thread thread = new Thread(work, "iceberg-crypto-parts");
    thread.setDaemon(true);
    return thread;
  }

  /**
   * Does parts, the first error of which is thrown, or a cancel.
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
   * Begins a part as soon as a thread is free for it.
   *
   * @throws IllegalStateException after an error of another part, which {@link #run} throws
   */
  public void begin(Runnable part) {
    try {
      free.acquire();
    } catch (InterruptedException e) {
      interrupted(e);
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

  /** Waits before a part is begun, unless one fails meanwhile. */
  public synchronized void pause(long nanos) {
    long end = System.nanoTime() + nanos;
    try {
      for (long left = nanos; left > 0 && failure == null; left = end - System.nanoTime()) {
        TimeUnit.NANOSECONDS.timedWait(this, left);
      }
    } catch (InterruptedException e) {
      interrupted(e);
    }
  }

  private static void interrupted(InterruptedException e) {
    Thread.currentThread().interrupt();
    CancelledException.rethrow(e);
  }

  private void all(Consumer<Workers> giver) {
    try {
      giver.accept(this);
    } catch (Throwable e) { // a checked one of Scala's, too; or there can be no more threads
      fail(cancelOr(e));
    }

    pool.shutdown();
    await();
    CancelledException.check();
    if (failure != null) {
      throw Workers.<RuntimeException>unchecked(failure);
    } else if (done < begun) {
      throw new IllegalStateException("A thread has ended before its work");
    }
  }

  /** As it is: Spark's are checked, and not declared. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException unchecked(Throwable failure) throws E {
    throw (E) failure;
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
    notifyAll();
    if (failure instanceof CancelledException) {
      return;
    }

    if (reason instanceof CancelledException) {
      this.failure = reason;
      atWork.forEach(CancelledException::cancel);
    } else if (failure == null) {
      this.failure = reason;
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
        fail(cancelOr(e));
      }
    }

    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
