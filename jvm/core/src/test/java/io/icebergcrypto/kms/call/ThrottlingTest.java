package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.testing.PlainKms;
import java.net.ConnectException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A KMS that limits how often it is asked, and clients of it that all ask in the same moment. */
class ThrottlingTest {
  private static final int CLIENTS = 500; // the executors of a large cluster, one JVM each

  /** All times are a tenth: of a second here, and of the defaults below. */
  private static final long SECOND = 100_000_000L;

  private static final int CALLS_A_SECOND = 50;
  private static final Map<String, String> A_TENTH =
      Map.of(
          KmsProperties.RETRY_INITIAL_DELAY_MS, "20",
          KmsProperties.RETRY_MAX_DELAY_MS, "500",
          KmsProperties.RETRY_TIMEOUT_MS, "3000",
          KmsProperties.CALL_TIMEOUT_MS, "1000",
          KmsProperties.BREAKER_DELAY_MS, "1000");

  private static final AtomicInteger CALLS = new AtomicInteger();
  private static final AtomicInteger REFUSED = new AtomicInteger();
  private static volatile BooleanSupplier lets;
  private static volatile RuntimeException failure; // of all calls; null: none
  private static volatile long takesMs;

  /** How KMSs limit calls. */
  private enum Limit {
    /** AWS KMS refuses all further requests in a second; Google so, too, for keys in HSMs. */
    IN_EACH_SECOND {
      @Override
      boolean lets(long nanos) {
        if (nanos / SECOND != at) {
          this.at = nanos / SECOND;
          this.left = CALLS_A_SECOND;
        }
        return left-- > 0;
      }
    },
    /** Vault's quotas refill a bucket. */
    TOKEN_BUCKET {
      @Override
      boolean lets(long nanos) {
        this.left =
            Math.min(CALLS_A_SECOND, left + (nanos - at) * (double) CALLS_A_SECOND / SECOND);
        this.at = nanos;
        boolean isFree = left >= 1;
        this.left -= isFree ? 1 : 0;
        return isFree;
      }
    };

    long at;
    double left;

    /** Whether a call is answered that comes so many nanoseconds after the start. */
    abstract boolean lets(long nanos);

    /** Starts now, as after a while without calls. */
    BooleanSupplier full() {
      this.at = 0;
      this.left = CALLS_A_SECOND;
      long start = System.nanoTime();
      return () -> {
        synchronized (this) {
          return lets(System.nanoTime() - start);
        }
      };
    }
  }

  /** The double of the KMS. */
  public static final class LimitedKms extends PlainKms {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      throw new UnsupportedOperationException();
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      CALLS.incrementAndGet();
      if (failure != null) {
        throw failure;
      }

      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(takesMs));
      if (lets.getAsBoolean()) {
        return ByteBuffer.wrap(new byte[16]);
      }
      REFUSED.incrementAndGet();
      throw new KmsUnavailableException("Reduce the frequency of your calls", "Wait.")
          .throttledIf(true);
    }
  }

  @BeforeEach
  void reset() {
    CALLS.set(0);
    REFUSED.set(0);
    lets = () -> true;
    failure = null;
    takesMs = 0;
  }

  /** Failsafe's deadline may interrupt a thread that has just ended its wait. */
  @AfterEach
  void forgetInterrupt() {
    Thread.interrupted();
  }

  private static CachingKmsClient client(Map<String, String> more) {
    Map<String, String> properties = new HashMap<>(A_TENTH);
    properties.put(KmsProperties.KMS_IMPL, LimitedKms.class.getName());
    properties.putAll(more);
    return KmsClients.create(properties);
  }

  private static ByteBuffer unwrap(CachingKmsClient client, int key) {
    return client.unwrapKey(ByteBuffer.wrap(new byte[] {(byte) key}), "k");
  }

  /** Each asks for a key, all at once; how long that takes, in seconds as above. */
  private static double allAtOnce(List<CachingKmsClient> clients) throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    List<FutureTask<ByteBuffer>> asked =
        clients.stream()
            .map(
                one ->
                    new FutureTask<>(
                        () -> {
                          go.await();
                          return unwrap(one, 0);
                        }))
            .toList();
    asked.forEach(task -> new Thread(null, task, "executor", 1 << 18).start());
    long start = System.nanoTime();
    go.countDown();
    for (FutureTask<ByteBuffer> task : asked) {
      assertThat(task.get(60, TimeUnit.SECONDS).remaining()).isEqualTo(16);
    }
    return (System.nanoTime() - start) / (double) SECOND;
  }

  private static List<CachingKmsClient> clients(Map<String, String> more) {
    return Stream.generate(() -> client(more)).limit(CLIENTS).toList();
  }

  @ParameterizedTest
  @EnumSource
  void whoIsRefusedInTheSameMomentComesBackInAnother(Limit limit) throws Exception {
    List<CachingKmsClient> clients = clients(Map.of());
    lets = limit.full();
    double seconds = allAtOnce(clients);
    double atBest = (CLIENTS - CALLS_A_SECOND) / (double) CALLS_A_SECOND;
    assertThat(seconds).isLessThan(3 * atBest);
    assertThat(REFUSED.get()).isLessThan(10 * CLIENTS);
    assertThat(CALLS.get() - REFUSED.get()).as("a call for each").isEqualTo(CLIENTS);
    assertThat(clients).allMatch(one -> one.snapshot().get("circuit").equals("closed"));
    assertThat(clients).allMatch(one -> one.snapshot().get("keys_left_alone").equals(0));
  }

  @Test
  void theSessionsOfOneJvmKeepToItsLimitTogether() throws Exception {
    List<CachingKmsClient> clients = clients(Map.of(KmsProperties.MAX_CALLS_PER_SECOND, "400"));
    lets = Limit.IN_EACH_SECOND.full(); // 500 in a real one
    assertThat(allAtOnce(clients)).isBetween(0.9 * CLIENTS / 40, 4.0 * CLIENTS / 40);
    assertThat(REFUSED.get()).isLessThan(CLIENTS / 20); // none, but where this JVM stood still
    CALLS.set(0);
    allAtOnce(clients);
    assertThat(CALLS).as("keys from the cache cost none").hasValue(0);
  }

  @Test
  void aCallEndsByItsTimeAndOpensNoCircuit() {
    lets = () -> false;
    CachingKmsClient client =
        client(Map.of(KmsProperties.RETRY_TIMEOUT_MS, "200", KmsProperties.BREAKER_FAILURES, "1"));
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> unwrap(client, 0))
          .isInstanceOf(KmsUnavailableException.class)
          .hasMessageContaining("LimitedKms could not be asked for key 'k' for 200 ms because of")
          .hasMessageContaining("Reduce the frequency of your calls")
          .hasMessageContaining(KmsProperties.MAX_CALLS_PER_SECOND);
    }
    assertThat(CALLS.get()).isGreaterThan(8);
    lets = () -> true;
    assertThat(unwrap(client, 0).remaining()).isEqualTo(16);
  }

  @Test
  void oneAttemptIsOne() {
    lets = () -> false;
    CachingKmsClient client = client(Map.of(KmsProperties.RETRY_MAX_ATTEMPTS, "1"));
    assertThatThrownBy(() -> unwrap(client, 0)).hasMessageContaining("Reduce the frequency");
    assertThat(CALLS).hasValue(1);
  }

  @Test
  void aCallWhoseTurnIsTooLateIsNotMade() {
    CachingKmsClient client =
        client(
            Map.of(
                KmsProperties.MAX_CALLS_PER_SECOND, "1",
                KmsProperties.RETRY_TIMEOUT_MS, "300",
                KmsProperties.BREAKER_FAILURES, "1"));
    unwrap(client, 0);
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> unwrap(client, 1))
          .isInstanceOf(KmsUnavailableException.class)
          .hasMessageContaining("LimitedKms was not called for key 'k': too many calls wait for")
          .hasMessageContaining("encryption.kms.max-calls-per-second=1 already")
          .hasMessageContaining("300 ms of encryption.kms.retry.timeout-ms");
    }
    assertThat(CALLS).hasValue(1);
    assertThat(unwrap(client, 0).remaining()).as("from the cache").isEqualTo(16);
  }

  @Test
  void aCancelledCallLeavesItsTurnToTheNext() throws Exception {
    CachingKmsClient client = client(Map.of(KmsProperties.MAX_CALLS_PER_SECOND, "2"));
    unwrap(client, 0);
    List<Thread> waiting =
        IntStream.range(1, 9).mapToObj(key -> new Thread(() -> unwrap(client, key))).toList();
    waiting.forEach(one -> one.setUncaughtExceptionHandler((thread, e) -> {}));
    waiting.forEach(Thread::start);
    Thread.sleep(50);
    long start = System.nanoTime();
    waiting.forEach(Thread::interrupt);
    for (Thread one : waiting) {
      one.join(); // until it has left the line
    }

    unwrap(client, 9);
    assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(3)); // 4 for eight
  }

  /** A call that waited has time for its answer, and whoever waits in vain is told of the limit. */
  @Test
  void aboveTheLimitCallsAreAnsweredAsFastAsItLets() throws Exception {
    takesMs = 50;
    Map<String, String> limits =
        Map.of(
            KmsProperties.MAX_CALLS_PER_SECOND, "20",
            KmsProperties.RETRY_TIMEOUT_MS, "900",
            KmsProperties.BREAKER_FAILURES, "1");
    CachingKmsClient client = client(limits);
    for (int wave = 0; wave < 2; wave++) {
      int first = 40 * wave;
      List<FutureTask<ByteBuffer>> calls =
          IntStream.range(first, first + 40)
              .mapToObj(key -> new FutureTask<>(() -> unwrap(client, key)))
              .toList();
      calls.forEach(call -> new Thread(call).start());
      int answered = 0;
      for (FutureTask<ByteBuffer> call : calls) {
        try {
          answered += call.get().remaining() / 16;
        } catch (ExecutionException e) {
          assertThat(e).hasMessageContaining("too many calls wait for encryption.kms.max-calls");
        }
      }

      assertThat(answered).isBetween(5, 20);
    }

    assertThat(client.snapshot()).containsEntry("circuit", "closed");
    assertThat(client.snapshot()).containsEntry("keys_left_alone", 0);
  }

  @Test
  void aLimitDoesNotHideThatTheKmsIsGone() {
    failure = new KmsUnavailableException("gone", "Start it.", new ConnectException());
    CachingKmsClient client =
        client(
            Map.of(
                KmsProperties.MAX_CALLS_PER_SECOND, "3",
                KmsProperties.RETRY_TIMEOUT_MS, "300",
                KmsProperties.BREAKER_FAILURES, "1"));
    assertThatThrownBy(() -> unwrap(client, 0))
        .hasMessageContaining("was not called for key 'k'")
        .hasMessageContaining("an earlier attempt failed: gone");
    assertThat(client.snapshot()).containsEntry("circuit", "open");
  }

  @Test
  void aLimitIsOneOrMore() {
    for (String limit : List.of("0", "-1", "1.5", "many")) {
      assertThatThrownBy(() -> client(Map.of(KmsProperties.MAX_CALLS_PER_SECOND, limit)))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("encryption.kms.max-calls-per-second is not a number of calls");
    }
    String most = String.valueOf(Integer.MAX_VALUE);
    CachingKmsClient client = client(Map.of(KmsProperties.MAX_CALLS_PER_SECOND, most));
    assertThat(unwrap(client, 0).remaining()).isEqualTo(16);
  }

  @Test
  void aCancelledTaskDoesNotWaitForItsTurn() throws Exception {
    CachingKmsClient client = client(Map.of(KmsProperties.MAX_CALLS_PER_SECOND, "2"));
    unwrap(client, 0);
    FutureTask<ByteBuffer> work = new FutureTask<>(() -> unwrap(client, 1));
    Thread task = new Thread(work);
    task.start();
    Thread.sleep(50);
    task.interrupt();
    assertThatThrownBy(() -> work.get(10, TimeUnit.SECONDS))
        .hasCauseInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("'k' was interrupted");
    assertThat(CALLS).hasValue(1);
  }
}
