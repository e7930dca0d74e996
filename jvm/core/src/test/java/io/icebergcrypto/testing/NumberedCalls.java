package io.icebergcrypto.testing;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BiFunction;

/**
 * The calls to the storage below a folder, to the KMS, and to a catalog's database or server, in
 * the order in which they are made. At one of them something goes wrong: so a test can try each of
 * them in turn. There is one such count in a JVM.
 *
 * <p>{@link NoChmodFileSystem}, {@link NumberedKms}, {@link NumberedDriver} and {@link
 * BrokenAnswers} take part.
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
    UPDATE,
    /** A request to a catalog's server that changes nothing. */
    GET,
    /** One that may. */
    POST;

    /** Those after which something is other than before. */
    public static final Set<Kind> CHANGES =
        EnumSet.of(CREATE, CLOSE, RENAME, DELETE, WRAP, UPDATE, POST);

    /** Those of the KMS. */
    public static final Set<Kind> OF_KMS = EnumSet.of(WRAP, UNWRAP);

    /** Those that write to the disk. */
    public static final Set<Kind> OF_DISK = EnumSet.of(CREATE, CLOSE);
  }

  /** What goes wrong at the call with the number. */
  public enum Fault {
    /** Nothing. */
    NONE,
    /** It fails, and so does every later call: to the world outside, a process ended. */
    KILLED,
    /** It fails, and has done nothing. */
    FAILED,
    /** It was done, and fails. */
    LOST,
    /** It is made, after another client has done something. */
    OVERTAKEN,
    /** It was done, then another client does something on top, and it fails. */
    BURIED,
    /**
     * The login has expired: it fails, and so does every later call. A caller that asks for the
     * same a third time finds that it has been renewed: Iceberg asks for metadata 20 times.
     */
    EXPIRED,
    /** The disk is full: nothing is written any more. */
    FULL,
    /** The KMS gives a {@link Lie}, and so it does from then on. */
    LIES,
    /** It gives one, and tells the truth after it. */
    LIED;

    private boolean lasts() {
      return this == KILLED || this == EXPIRED || this == FULL || this == LIES;
    }
  }

  /** A call. */
  @FunctionalInterface
  public interface Call<T, E extends Exception> {
    /** Makes it. */
    T make() throws E;
  }

  private static final Duration LONGEST = Duration.ofMinutes(2);

  private static final NumberedCalls NONE =
      new NumberedCalls("/no such folder", Kind.CHANGES, Fault.NONE, -1, () -> {});

  private static volatile NumberedCalls now = NONE;

  private final String folder;
  private final Fault fault;
  private final int number;
  private final Set<Kind> kinds;
  private final Runnable other;
  private int next;
  private final Map<String, Integer> refused = new HashMap<>();
  private String hit;
  private boolean renewed;
  private volatile boolean pauses;

  private NumberedCalls(String folder, Set<Kind> kinds, Fault fault, int number, Runnable other) {
    this.folder = folder;
    this.kinds = kinds;
    this.fault = fault;
    this.number = number;
    this.other = other;
  }

  /**
   * Begins to count.
   *
   * @param folder the files that count, and all that is asked of a KMS and a catalog does
   * @param kinds the calls that count
   * @param number which call it is that goes wrong; 0 is the first
   */
  public static void begin(String folder, Set<Kind> kinds, Fault fault, int number) {
    begin(folder, kinds, fault, number, () -> {});
  }

  /**
   * The same.
   *
   * @param other what another client does before the call is made, for {@link Fault#OVERTAKEN}, or
   *     after it for {@link Fault#BURIED}, and beside one that is answered with a lie; its calls do
   *     not count
   */
  public static void begin(
      String folder, Set<Kind> kinds, Fault fault, int number, Runnable other) {
    now = new NumberedCalls(folder, kinds, fault, number, other);
  }

  /**
   * All is well from now on.
   *
   * @return the call that went wrong, as "RENAME v3.metadata.json"; null if there were not as many
   */
  public static String end() {
    NumberedCalls before = now;
    now = NONE;
    return before.hit();
  }

  /** How many calls there were since the beginning. */
  public static int count() {
    return now.counted();
  }

  /** A file's call. Files for bookkeeping do not count, but nothing is asked after a kill. */
  static <T, E extends Exception> T ofFile(
      Kind kind, String path, Call<T, E> call, BiFunction<Fault, String, E> failure) throws E {
    NumberedCalls calls = now;
    String name = path.substring(path.lastIndexOf('/') + 1);
    if (!path.startsWith(calls.folder) || calls.pauses) {
      return call.make();
    } else if (name.startsWith(".") || name.contains("version-hint")) {
      calls.checkAlive();
      return call.make();
    }

    return calls.make(kind, name, call, failure);
  }

  /** Another call. */
  static <T, E extends Exception> T of(
      Kind kind, String what, Call<T, E> call, BiFunction<Fault, String, E> failure) throws E {
    NumberedCalls calls = now;
    return calls.pauses ? call.make() : calls.make(kind, what, call, failure);
  }

  /**
   * A call of the KMS. Public, as {@link NumberedKms} comes from another class loader in a driver.
   *
   * @param lie what it may answer instead
   */
  public static ByteBuffer ofKms(
      Kind kind,
      String what,
      Call<ByteBuffer, RuntimeException> call,
      Call<ByteBuffer, RuntimeException> lie,
      BiFunction<Fault, String, RuntimeException> failure) {
    NumberedCalls calls = now;
    boolean lies = calls.fault == Fault.LIED || calls.fault == Fault.LIES;
    if (lies && !calls.pauses) {
      return calls.add(kind, what) ? lie.make() : call.make();
    }

    return of(kind, what, call, failure);
  }

  /** What is done beside, now. */
  public static void meanwhile() {
    now.besides();
  }

  /** Whether a file can be written to. */
  static boolean hasRoom() {
    NumberedCalls calls = now;
    return calls.fault != Fault.FULL || calls.pauses || calls.hit() == null;
  }

  private <T, E extends Exception> T make(
      Kind kind, String what, Call<T, E> call, BiFunction<Fault, String, E> failure) throws E {
    if (!add(kind, what)) {
      return call.make();
    }

    switch (fault) {
      case KILLED -> throw new Error("killed");
      case LOST -> {
        if (Kind.CHANGES.contains(kind)) {
          call.make();
        }
      }
      case OVERTAKEN -> {
        besides();
        return call.make();
      }
      case BURIED -> {
        call.make();
        besides();
      }
      case FULL -> {
        if (kind == Kind.CREATE) {
          return call.make(); // an empty file, to which nobody can write
        }
      }
      default -> {} // it fails
    }

    throw failure.apply(fault, "503 Slow Down: " + what);
  }

  /** Whether something goes wrong at this call. */
  private synchronized boolean add(Kind kind, String what) {
    checkAlive();
    boolean counts = kinds.contains(kind);
    if (counts && next++ == number && fault != Fault.NONE) {
      this.hit = kind + " " + what;
    } else if (!counts || hit == null || !fault.lasts()) {
      return false;
    }

    return fault != Fault.EXPIRED || isRefused(kind + " " + what);
  }

  private boolean isRefused(String call) {
    this.renewed |= refused.merge(call, 1, Integer::sum) > 2;
    return !renewed;
  }

  /** Another client acts, in a thread and with sessions of its own. */
  private void besides() {
    this.pauses = true;
    Thread thread = new Thread(other, "other");
    thread.start();
    try {
      thread.join(LONGEST.toMillis());
      if (thread.isAlive()) {
        throw new IllegalStateException("what the other does takes more than " + LONGEST);
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    } finally {
      this.pauses = false;
    }
  }

  private synchronized void checkAlive() {
    if (fault == Fault.KILLED && hit != null) {
      throw new Error("killed"); // none of our code runs after it
    }
  }

  private synchronized int counted() {
    return next;
  }

  private synchronized String hit() {
    return hit;
  }
}
