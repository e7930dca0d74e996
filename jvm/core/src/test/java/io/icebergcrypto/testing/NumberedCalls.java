package io.icebergcrypto.testing;

import java.util.EnumSet;
import java.util.Set;
import java.util.function.Function;

/**
 * The calls to the storage below a folder, to the KMS and to a catalog's database, in the order in
 * which they are made. At one of them something goes wrong, once: so a test can try each of them in
 * turn. There is one such count in a JVM.
 *
 * <p>{@link NoChmodFileSystem}, {@link NumberedKms} and {@link NumberedDriver} take part.
 */
public final class NumberedCalls {
  /** What is asked for. */
  public enum Kind {
    OPEN,
    LIST,
    CREATE,
    CLOSE,
    RENAME,
    DELETE,
    WRAP,
    UNWRAP,
    QUERY,
    UPDATE;

    /** Those after which something is other than before. */
    public static final Set<Kind> CHANGES = EnumSet.of(CREATE, CLOSE, RENAME, DELETE, WRAP, UPDATE);
  }

  /** What goes wrong at the call with the number. */
  public enum Fault {
    /** Nothing. */
    NONE,
    /** It fails, and so does whatever is asked after it: to the world outside, a process ended. */
    KILLED,
    /** It fails, and has done nothing. */
    FAILED,
    /** It was done, and fails. */
    LOST
  }

  /** A call. */
  @FunctionalInterface
  public interface Call<T, E extends Exception> {
    /** Makes it. */
    T make() throws E;
  }

  private static volatile NumberedCalls now =
      new NumberedCalls("/no such folder", Kind.CHANGES, Fault.NONE, 0);

  private final String folder;
  private final Fault fault;
  private final int number;
  private final Set<Kind> kinds;
  private int count;
  private String hit;

  private NumberedCalls(String folder, Set<Kind> kinds, Fault fault, int number) {
    this.folder = folder;
    this.kinds = kinds;
    this.fault = fault;
    this.number = number;
  }

  /**
   * Begins to count.
   *
   * @param folder the files that count, and all that is asked of a KMS and a database does
   * @param kinds the calls that count
   * @param number which call it is that goes wrong; 0 is the first
   */
  public static void begin(String folder, Set<Kind> kinds, Fault fault, int number) {
    now = new NumberedCalls(folder, kinds, fault, number);
  }

  /**
   * All is well from now on.
   *
   * @return the call that went wrong, as "RENAME v3.metadata.json"; null if there were not as many
   */
  public static String end() {
    NumberedCalls before = now;
    now = new NumberedCalls("/no such folder", Kind.CHANGES, Fault.NONE, 0);
    return before.hit();
  }

  /** A file's call. Files for bookkeeping do not count, but nothing is asked after a kill. */
  static <T, E extends Exception> T ofFile(
      Kind kind, String path, Call<T, E> call, Function<String, E> failure) throws E {
    NumberedCalls calls = now;
    String name = path.substring(path.lastIndexOf('/') + 1);
    if (!path.startsWith(calls.folder)) {
      return call.make();
    } else if (name.startsWith(".") || name.contains("version-hint")) {
      calls.checkAlive();
      return call.make();
    }

    return calls.make(kind, name, call, failure);
  }

  /** Another call. */
  static <T, E extends Exception> T of(
      Kind kind, String what, Call<T, E> call, Function<String, E> failure) throws E {
    return now.make(kind, what, call, failure);
  }

  private <T, E extends Exception> T make(
      Kind kind, String what, Call<T, E> call, Function<String, E> failure) throws E {
    boolean isTheOne = add(kind, what);
    if (!isTheOne) {
      return call.make();
    } else if (fault == Fault.KILLED) {
      throw new Error("killed");
    } else if (fault == Fault.LOST && Kind.CHANGES.contains(kind)) {
      call.make();
    }

    throw failure.apply("503 Slow Down: " + hit);
  }

  private synchronized boolean add(Kind kind, String what) {
    checkAlive();
    if (!kinds.contains(kind) || count++ != number || fault == Fault.NONE) {
      return false;
    }

    this.hit = kind + " " + what;
    return true;
  }

  private synchronized void checkAlive() {
    if (fault == Fault.KILLED && hit != null) {
      throw new Error("killed"); // no code of ours goes on after it
    }
  }

  private synchronized String hit() {
    return hit;
  }
}
