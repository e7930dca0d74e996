package io.icebergcrypto.testing;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.icebergcrypto.IcebergCryptoException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;

/**
 * One round of a fuzz target: hostile input, from a seed of its own, so that a failure repeats. A
 * target parses it and may give a value or throw an {@link IcebergCryptoException} with a hint,
 * nothing else; it takes seconds and megabytes at most, for any input.
 *
 * <p>{@code -Diceberg.crypto.fuzz=N} sets the number of rounds of every target; {@code make soak}
 * asks for many. The seeds of the rounds go up from {@link #SEED}: with the seed of a failure as
 * {@code ICEBERG_CRYPTO_SEED}, the first round fails.
 */
public final class Fuzz {
  /** Where the random tests of a run begin: the environment's ICEBERG_CRYPTO_SEED, or 0. */
  public static final int SEED =
      Integer.parseInt(System.getenv().getOrDefault("ICEBERG_CRYPTO_SEED", "0"));

  private static final int ROUNDS = Integer.getInteger("iceberg.crypto.fuzz", 5_000);
  private static final long MOST_MS = 20_000; // a busy machine's pauses included
  private static final long MOST_BYTES = 64L << 20;

  private static final int[] NUMBERS = {
    0, 1, -1, 7, 8, 27, 28, 29,
    32, 33, 36, 44, 127, 128, 255, 256,
    4095, 4096, 4097, 1 << 20, 64 << 20, Integer.MAX_VALUE, Integer.MIN_VALUE
  };

  /** What turns up in text that breaks readers of it. */
  private static final String[] WORDS = {
    "", "null", "-1", "1e99999", "99999999999999999999",
    "[]", "{}", "[[[[[[[[", "\"\"", "\n",
    "\r\n  hint: ", "\u0000", "\ud800", "%s%n", "$1\\",
    "/../", "//", "http://[::1", "a".repeat(5000)
  };

  /** A parser under test. */
  @FunctionalInterface
  public interface Target {
    /**
     * Parses hostile input.
     *
     * @return whether there was a value
     * @throws IcebergCryptoException when there was none
     */
    boolean parse(Fuzz round) throws Exception;
  }

  private final int seed;
  private final Random random;

  private Fuzz(int seed) {
    this.seed = seed;
    // spread: the first numbers of seeds in a row are nearly the same
    this.random = new Random(seed * 0x9E3779B97F4A7C15L);
  }

  /**
   * Runs a target.
   *
   * @param cost 1 for one that takes microseconds; others get that many times fewer rounds
   * @return how many rounds gave a value: not none and not all, or the input does not test much
   */
  public static int run(int cost, Target target) {
    int rounds = Math.max(100, ROUNDS / cost);
    AtomicReference<Throwable> failure = new AtomicReference<>();
    int[] state = {0, 0}; // round, values
    Thread runner =
        new Thread(
            () -> {
              try {
                for (int round = 0; round < rounds; round++) {
                  state[1] += new Fuzz(SEED + round).runOnce(target) ? 1 : 0;
                  synchronized (state) {
                    state[0] = round + 1;
                  }
                }
              } catch (Throwable e) {
                failure.set(e);
              }
            },
            "fuzz");
    runner.setDaemon(true);
    runner.start();
    watch(runner, state);
    if (failure.get() != null) {
      throw new AssertionError(failure.get().getMessage(), failure.get());
    }

    assertThat(state[1])
        .as("rounds with a value, of " + rounds)
        .isBetween(rounds / 200, rounds - 1);
    return state[1];
  }

  /** Waits for the end, or for a round that has none. */
  private static void watch(Thread runner, int[] state) {
    int seen = -1;
    while (runner.isAlive()) {
      try {
        runner.join(MOST_MS);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }

      int now;
      synchronized (state) {
        now = state[0];
      }

      if (now == seen && runner.isAlive()) {
        AssertionError endless = new AssertionError("seed " + (SEED + now) + " does not end");
        endless.setStackTrace(runner.getStackTrace());
        throw endless;
      }

      seen = now;
    }
  }

  private boolean runOnce(Target target) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    boolean value = false;
    try {
      value = target.parse(this);
    } catch (IcebergCryptoException e) {
      assertThat(e.hint()).as("the hint of %s", e.problem()).isNotBlank();
    } catch (Exception | Error e) {
      throw new AssertionError("seed " + seed + ": " + e, e);
    }

    assertThat(threads.getCurrentThreadAllocatedBytes() - before)
        .as("bytes allocated with seed " + seed)
        .isLessThan(MOST_BYTES);
    return value;
  }

  /** The round's own random numbers. */
  public Random random() {
    return random;
  }

  /** Random bytes, up to so many. */
  public byte[] bytes(int most) {
    byte[] bytes = new byte[random.nextInt(most + 1)];
    random.nextBytes(bytes);
    return bytes;
  }

  /** One of them. */
  @SafeVarargs
  public final <T> T oneOf(T... all) {
    return all[random.nextInt(all.length)];
  }

  /** A number at which readers of numbers break, or any other. */
  public int number() {
    return random.nextBoolean() ? NUMBERS[random.nextInt(NUMBERS.length)] : random.nextInt(200_000);
  }

  /** Valid bytes with one to four changes, or none; or random ones. */
  public byte[] mutated(byte[] valid) {
    if (random.nextInt(20) == 0) {
      return bytes(2 * valid.length + 8);
    }

    byte[] result = valid.clone();
    for (int i = random.nextInt(5); i > 0; i--) {
      result = mutate(result);
    }

    return result;
  }

  /** The same for text, in which words of its own and those above are put in, too. */
  public String mutated(String valid) {
    String result = valid;
    for (int i = random.nextInt(4); i > 0; i--) {
      int at = random.nextInt(result.length() + 1);
      if (random.nextBoolean()) {
        int end = Math.min(result.length(), at + random.nextInt(12));
        String word = WORDS[random.nextInt(WORDS.length)];
        result = result.substring(0, at) + word + result.substring(end);
      } else {
        result = new String(mutate(result.getBytes(ISO_8859_1)), ISO_8859_1);
      }
    }

    return result;
  }

  private byte[] mutate(byte[] bytes) {
    if (bytes.length == 0) {
      return bytes(20);
    }

    // Headers and footers are at the ends: every other change goes there.
    int at = random.nextInt(bytes.length);
    switch (random.nextInt(4)) {
      case 0 -> at = Math.min(at, random.nextInt(16));
      case 1 -> at = Math.max(at, bytes.length - 1 - random.nextInt(130));
      default -> {}
    }

    byte[] result = bytes.clone();
    switch (random.nextInt(9)) {
      case 0 -> result[at] ^= (byte) (1 << random.nextInt(8));
      case 1 -> result[at] = (byte) random.nextInt();
      case 2 -> result[at] = (byte) 0xff;
      case 3 -> overwrite(result, at, littleEndian(number()));
      case 4 -> overwrite(result, at, ByteBuffer.allocate(4).putInt(number()).array());
      case 5 -> result = Arrays.copyOf(bytes, at);
      case 6 -> result = splice(bytes, at, at, bytes(12));
      case 7 -> { // a part of it again, somewhere else
        int from = random.nextInt(bytes.length);
        byte[] part = Arrays.copyOfRange(bytes, from, Math.min(bytes.length, from + 40));
        result = splice(bytes, at, at, part);
      }
      default -> result = splice(bytes, at, Math.min(bytes.length, at + 9), new byte[0]);
    }

    return result;
  }

  private static byte[] splice(byte[] bytes, int from, int to, byte[] between) {
    return ByteBuffer.allocate(from + between.length + bytes.length - to)
        .put(bytes, 0, from)
        .put(between)
        .put(bytes, to, bytes.length - to)
        .array();
  }

  /** Puts bytes over others, as far as they are there. */
  public static void overwrite(byte[] target, int at, byte[] source) {
    for (int i = Math.max(0, -at); i < source.length && at + i < target.length; i++) {
      target[at + i] = source[i];
    }
  }

  /** A number as Parquet and AES GCM streams have it. */
  public static byte[] littleEndian(int number) {
    return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(number).array();
  }

  @Override
  public String toString() {
    return "seed " + seed;
  }
}
