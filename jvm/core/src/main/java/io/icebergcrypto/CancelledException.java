package io.icebergcrypto;

import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedByInterruptException;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The call was cancelled: its Spark jobs, or the thread that runs it. It ends, whatever it was
 * doing: a cancel is not a lost race, which is tried again, and not a finding about a file.
 *
 * <p>See docs/errors.md#cancellederror.
 */
public final class CancelledException extends IcebergCryptoException {
  private static final long serialVersionUID = 1L;

  /** Spark's job, cancelled by itself, by its group, tag or stage, or with all others. */
  private static final Pattern SPARK_JOB = Pattern.compile("\\bJob \\d+ cancelled\\b");

  /** A library may catch an interruption, and go on. */
  private static final Set<Thread> CANCELLED = ConcurrentHashMap.newKeySet();

  private CancelledException(String reason, Throwable cause) {
    super(
        "the call was cancelled: " + reason,
        "Nothing was done after that. Call it again: it continues, starts over, or reports that it"
            + " was already done.",
        cause);
  }

  /** Cancels the call that a thread runs: once, and what it then does {@link #toTheEnd} goes on. */
  public static void cancel(Thread thread) {
    if (CANCELLED.add(thread)) {
      thread.interrupt();
    }
  }

  /** Says that this thread's call has ended, so that no cancel of it ends the next. */
  public static void ended() {
    CANCELLED.remove(Thread.currentThread());
    Thread.interrupted();
  }

  private static boolean isCancelled(Thread thread) {
    return thread.isInterrupted() || CANCELLED.contains(thread);
  }

  /**
   * Ends the call if it was cancelled: before each step that cannot be undone, such as a commit.
   *
   * @throws CancelledException when this thread was interrupted
   */
  public static void check() {
    check(Thread.currentThread());
  }

  /** The same of a call for which another thread works. */
  public static void check(Thread caller) {
    if (isCancelled(caller)) {
      throw new CancelledException("its thread was interrupted", null);
    }
  }

  /**
   * Ends the call if a cancel is what it failed with: before a failure is tried again, or reported
   * as something else.
   *
   * @throws CancelledException when it is, or this thread was interrupted
   */
  public static void rethrow(Throwable failure) {
    Throwable cancel =
        Stream.iterate(failure, Objects::nonNull, Throwable::getCause)
            .filter(CancelledException::isCancel)
            .findFirst()
            .orElse(null);
    if (cancel instanceof CancelledException known) {
      throw known;
    } else if (cancel != null) {
      throw new CancelledException(firstLine(cancel), failure);
    } else if (isCancelled(Thread.currentThread())) {
      throw new CancelledException("its thread was interrupted", failure);
    }
  }

  /**
   * Does what has to be done after a cancel, too: an interrupted thread can delete no file, say.
   */
  public static void toTheEnd(Runnable work) {
    boolean interrupted = Thread.interrupted();
    try {
      work.run();
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static boolean isCancel(Throwable error) {
    if (error instanceof InterruptedIOException) { // libraries say a time limit by it, too
      return !(error instanceof SocketTimeoutException) && Thread.currentThread().isInterrupted();
    }

    return error instanceof CancelledException
        || error instanceof InterruptedException
        || error instanceof ClosedByInterruptException
        || error instanceof CancellationException
        || error.getClass().getName().startsWith("org.apache.spark.")
            && error.getMessage() != null
            && SPARK_JOB.matcher(error.getMessage()).find();
  }

  private static String firstLine(Throwable error) {
    return error.toString().lines().findFirst().orElse("");
  }
}
