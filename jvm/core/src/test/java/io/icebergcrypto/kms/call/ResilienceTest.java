package io.icebergcrypto.kms.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.testing.PlainKms;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.net.http.HttpConnectTimeoutException;
import java.net.http.HttpTimeoutException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ResilienceTest {
  private static final AtomicInteger CALLS = new AtomicInteger();
  private static volatile Supplier<ByteBuffer> answer;
  private static volatile boolean interrupted;

  /** A double of a KMS that answers as told. */
  public static final class ScriptedKms extends PlainKms {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      return unwrapKey(key, wrappingKeyId);
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      CALLS.incrementAndGet();
      return answer.get();
    }
  }

  /** A double of a KMS that logs in at once, with a token that no header may have. */
  public static final class NoStart extends PlainKms {
    private static final long serialVersionUID = 1L;

    @Override
    public void initialize(Map<String, String> properties) {
      throw new IllegalArgumentException("invalid header value: s.secret");
    }
  }

  @BeforeEach
  void reset() {
    CALLS.set(0);
    interrupted = false;
    answer = ResilienceTest::key;
  }

  private static ByteBuffer key() {
    return ByteBuffer.wrap(new byte[16]);
  }

  private static CachingKmsClient client(String... more) {
    Map<String, String> properties = new HashMap<>();
    properties.put(KmsProperties.KMS_IMPL, ScriptedKms.class.getName());
    properties.put(KmsProperties.RETRY_INITIAL_DELAY_MS, "1");
    properties.put(KmsProperties.RETRY_MAX_DELAY_MS, "4");
    for (int i = 0; i < more.length; i += 2) {
      properties.put(more[i], more[i + 1]);
    }
    return KmsClients.create(properties);
  }

  private static ByteBuffer unwrap(CachingKmsClient client) {
    return client.unwrapKey(ByteBuffer.wrap(new byte[] {1, 2, 3}), "k");
  }

  private static KmsUnavailableException down() {
    return new KmsUnavailableException("ScriptedKms cannot be reached", "wait");
  }

  private static void failFirst(int failures) {
    answer = () -> CALLS.get() <= failures ? failed(down()) : key();
  }

  private static void failWith(RuntimeException error) {
    answer = () -> failed(error);
  }

  private static ByteBuffer failed(RuntimeException error) {
    throw error;
  }

  /** A call that waits long, and is the first one. */
  private static ByteBuffer interrupted() {
    try {
      Thread.sleep(60_000);
      return key();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      interrupted = true;
      throw down();
    }
  }

  private static void awaitCall() {
    while (CALLS.get() == 0) {
      sleep(5);
    }
  }

  private static ByteBuffer unwrap(CachingKmsClient client, String key) {
    return client.unwrapKey(ByteBuffer.wrap(new byte[1]), key);
  }

  @Test
  void anUnavailableKmsIsAskedAgain() {
    failFirst(3);
    CachingKmsClient client = client();
    assertThat(unwrap(client).remaining()).isEqualTo(16);
    assertThat(CALLS).hasValue(4);
    assertThat(client.metrics().unwrapCalls()).isEqualTo(4);
    assertThat(client.metrics().snapshot()).containsEntry("retries", 3L);
    assertThat(client.metrics().snapshot()).containsEntry("errors", 3L);
  }

  @Test
  void attemptsEnd() {
    failFirst(99);
    CachingKmsClient client = client(KmsProperties.RETRY_MAX_ATTEMPTS, "3");
    assertThatThrownBy(() -> unwrap(client))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("cannot be reached");
    assertThat(CALLS).hasValue(3);
  }

  @Test
  void aRefusalIsNotAskedAgain() {
    failWith(new AccessDeniedException("no", "ask your administrator"));
    CachingKmsClient client = client();
    for (int i = 0; i < 20; i++) {
      assertThatThrownBy(() -> unwrap(client)).isInstanceOf(AccessDeniedException.class);
    }
    assertThat(CALLS).hasValue(20); // and it opens no circuit
    assertThat(client.snapshot()).containsEntry("circuit", "closed");
  }

  @Test
  void anotherClientsNetworkErrorIsTransientAndOthersAreNot() {
    Exception transientError = new SocketTimeoutException("read");
    answer =
        () ->
            failed(
                CALLS.get() == 1
                    ? new IllegalStateException("sdk", transientError)
                    : new IllegalStateException("broken"));
    assertThatThrownBy(() -> unwrap(client()))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("ScriptedKms could not unwrap with key 'k'")
        .hasMessageContaining("broken");
    assertThat(CALLS).hasValue(2);
  }

  @Test
  void aHangingCallEndsAndIsMadeAgain() {
    answer =
        () -> {
          sleep(CALLS.get() == 1 ? 60_000 : 0);
          return key();
        };
    long start = System.nanoTime();
    assertThat(unwrap(client(KmsProperties.CALL_TIMEOUT_MS, "100")).remaining()).isEqualTo(16);
    assertThat(System.nanoTime() - start).isLessThan(10_000_000_000L);
    assertThat(CALLS).hasValue(2);
  }

  @Test
  void aCallThatAlwaysHangsSaysSo() {
    answer =
        () -> {
          sleep(60_000);
          return null;
        };
    CachingKmsClient client =
        client(KmsProperties.CALL_TIMEOUT_MS, "50", KmsProperties.RETRY_MAX_ATTEMPTS, "2");
    assertThatThrownBy(() -> unwrap(client))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("ScriptedKms did not answer for key 'k'")
        .hasMessageContaining("50 ms a call");
    assertThat(CALLS).hasValue(2);
  }

  @Test
  void theDeadlineIsOverAllAttempts() {
    failFirst(Integer.MAX_VALUE);
    CachingKmsClient client =
        client(
            KmsProperties.RETRY_MAX_ATTEMPTS, "1000000",
            KmsProperties.RETRY_TIMEOUT_MS, "300",
            KmsProperties.BREAKER_FAILURES, "0");
    long start = System.nanoTime();
    assertThatThrownBy(() -> unwrap(client))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("300 ms in all")
        .hasMessageContaining("an earlier attempt failed: ");
    assertThat((System.nanoTime() - start) / 1_000_000).isBetween(250L, 10_000L);
    assertThat(CALLS.get()).isGreaterThan(3);
  }

  @Test
  void aDeadKmsIsLeftAloneAndThenTriedAgain() {
    failFirst(Integer.MAX_VALUE);
    CachingKmsClient client =
        client(
            KmsProperties.RETRY_MAX_ATTEMPTS, "1",
            KmsProperties.BREAKER_FAILURES, "3",
            KmsProperties.BREAKER_DELAY_MS, "400");
    for (int i = 0; i < 3; i++) {
      assertThatThrownBy(() -> unwrap(client)).hasMessageContaining("cannot be reached");
    }
    assertThatThrownBy(() -> unwrap(client))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining(
            "ScriptedKms was not called for key 'k': the last 3 calls for it failed");
    assertThat(CALLS).hasValue(3);
    assertThat(client.snapshot()).containsEntry("keys_left_alone", 1);

    answer = ResilienceTest::key;
    sleep(450);
    assertThat(unwrap(client).remaining()).isEqualTo(16);
    assertThat(client.snapshot()).containsEntry("keys_left_alone", 0);
  }

  @Test
  void aBrokenKeyLeavesTheOthersAlone() {
    CachingKmsClient client =
        client(
            KmsProperties.CACHE_TTL_MS, "0",
            KmsProperties.RETRY_MAX_ATTEMPTS, "1",
            KmsProperties.BREAKER_FAILURES, "2",
            KmsProperties.BREAKER_DELAY_MS, "60000");
    failFirst(Integer.MAX_VALUE);
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> unwrap(client)).hasMessageContaining("cannot be reached");
    }
    answer = ResilienceTest::key;
    assertThatThrownBy(() -> unwrap(client))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("was not called for key 'k': the last 2 calls for it failed");
    ByteBuffer wrapped = ByteBuffer.wrap(new byte[] {1});
    assertThat(client.unwrapKey(wrapped, "other").remaining()).isEqualTo(16);
    assertThat(client.snapshot())
        .containsEntry("circuit", "closed")
        .containsEntry("keys_left_alone", 1);
  }

  /** As of Vault, which does not have the version that wrapped it, or not yet. */
  @Test
  void aWrappedKeyThatCannotBeUnwrappedNowLeavesTheOthersAlone() {
    CachingKmsClient client =
        client(
            KmsProperties.CACHE_TTL_MS, "0",
            KmsProperties.RETRY_MAX_ATTEMPTS, "2",
            KmsProperties.BREAKER_FAILURES, "2",
            KmsProperties.BREAKER_DELAY_MS, "60000");
    failWith(new KmsUnavailableException("too new", "wait").ofWrappedKey());
    for (int i = 0; i < 4; i++) {
      assertThatThrownBy(() -> unwrap(client)).hasMessageContaining("too new");
    }
    assertThat(CALLS).hasValue(8);
    answer = ResilienceTest::key;
    assertThat(unwrap(client).remaining()).isEqualTo(16);
    assertThat(client.snapshot()).containsEntry("keys_left_alone", 0);
  }

  @Test
  void aKmsWithoutConnectionIsLeftAloneForEveryKey() {
    CachingKmsClient client =
        client(
            KmsProperties.RETRY_MAX_ATTEMPTS, "1",
            KmsProperties.BREAKER_FAILURES, "3",
            KmsProperties.BREAKER_DELAY_MS, "400");
    failWith(new KmsUnavailableException("down", "wait", new ConnectException()));
    for (String key : List.of("a", "b", "c")) {
      assertThatThrownBy(() -> unwrap(client, key)).hasMessageContaining("down");
    }
    assertThatThrownBy(() -> unwrap(client, "d"))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("ScriptedKms was not called for key 'd': its last 3 calls found no")
        .hasMessageContaining("Keys in the cache are still served.");
    assertThat(CALLS).hasValue(3);
    assertThat(client.snapshot()).containsEntry("circuit", "open");

    sleep(450);
    for (String key : List.of("d", "a")) { // the first is the one trial, and lets go on
      answer = ResilienceTest::key;
      assertThat(unwrap(client, key).remaining()).isEqualTo(16);
    }
    assertThat(client.snapshot()).containsEntry("circuit", "closed");
  }

  @Test
  void theDeadlineHidesNoMissingConnection() {
    CachingKmsClient client =
        client(
            KmsProperties.CALL_TIMEOUT_MS, "300", // the proportions of the defaults
            KmsProperties.RETRY_TIMEOUT_MS, "900",
            KmsProperties.BREAKER_FAILURES, "2");
    answer =
        () -> {
          sleep(250);
          throw new KmsUnavailableException(
              "dropped", "wait", new HttpConnectTimeoutException("no route"));
        };
    for (String key : List.of("a", "b")) {
      assertThatThrownBy(() -> unwrap(client, key)).hasMessageContaining("900 ms in all");
    }
    assertThat(client.snapshot()).containsEntry("circuit", "open");
  }

  @Test
  void aHeadersValueIsNotToldByAnyClient() {
    String token = "s.secret\nline";
    Exception told =
        new IllegalArgumentException("Illegal character(s) in message header value: " + token);
    failWith(new IllegalStateException("sdk: " + token, told));
    assertThatThrownBy(() -> unwrap(client()))
        .isInstanceOf(LoginFailedException.class)
        .hasMessageContaining("ScriptedKms")
        .hasMessageNotContaining("s.secret")
        .hasNoCause();
    assertThatThrownBy(
            () -> KmsClients.create(Map.of(KmsProperties.KMS_IMPL, NoStart.class.getName())))
        .isInstanceOf(LoginFailedException.class)
        .hasMessageNotContaining("s.secret")
        .hasNoCause();
  }

  @Test
  void whatIsNoFailureOfTheConnectionLeavesTheWayOpen() {
    CachingKmsClient client =
        client(KmsProperties.RETRY_MAX_ATTEMPTS, "1", KmsProperties.BREAKER_FAILURES, "2");
    List<Throwable> causes =
        List.of(
            new SocketTimeoutException("read"),
            new TimeoutException(),
            new HttpTimeoutException("no answer"),
            new InterruptedIOException());
    for (int i = 0; i < 8; i++) {
      failWith(new KmsUnavailableException("slow", "wait", causes.get(i % causes.size())));
      String key = "k" + i;
      assertThatThrownBy(() -> unwrap(client, key)).hasMessageContaining("slow");
    }
    assertThat(CALLS).hasValue(8);
    assertThat(client.snapshot()).containsEntry("circuit", "closed");
    assertThat(Breakers.Failure.of(new HttpConnectTimeoutException("no route")))
        .isEqualTo(Breakers.Failure.UNREACHED);
  }

  @Test
  void aTrialThatTheOtherBreakerForbidsIsNoTrial() {
    Breakers breakers = new Breakers(limits(2, 300));
    Exception unreached = new ConnectException();
    for (int i = 0; i < 2; i++) {
      breakers.enter("the KMS", "a");
      breakers.failed("a", new KmsUnavailableException("busy", "wait"));
    }
    sleep(200);
    for (String key : List.of("b", "c")) {
      breakers.enter("the KMS", key);
      breakers.failed(key, unreached);
    }
    sleep(150); // a's is over, the way's is not
    assertThatThrownBy(() -> breakers.enter("the KMS", "a")).hasMessageContaining("no connection");
    sleep(310);
    breakers.enter("the KMS", "a");
    assertThatThrownBy(() -> breakers.enter("the KMS", "d")).hasMessageContaining("no connection");
    breakers.answered("a");
    breakers.enter("the KMS", "d");
    assertThat(breakers.circuit()).isEqualTo("closed");
    assertThat(breakers.keysLeftAlone()).isZero();
  }

  @Test
  void theNumberOfBreakersIsBounded() {
    Breakers breakers = new Breakers(limits(1, 60_000));
    for (int i = 0; i < 3 * Breakers.MOST_KEYS; i++) {
      breakers.enter("the KMS", "good" + i);
      breakers.answered("good" + i);
    }
    assertThat(breakers.size()).isZero();
    for (int i = 0; i < 3 * Breakers.MOST_KEYS; i++) {
      breakers.enter("the KMS", "bad" + i);
      breakers.failed("bad" + i, new KmsUnavailableException("busy", "wait"));
    }
    assertThat(breakers.size()).isEqualTo(Breakers.MOST_KEYS);
    assertThat(breakers.circuit()).isEqualTo("closed");
  }

  private static Resilience.Limits limits(int failures, long delayMs) {
    return new Resilience.Limits(0, 1, 1, 1, 1000, 1000, failures, delayMs);
  }

  @Test
  void theHalfOpenCircuitLetsOneCallThrough() {
    failFirst(Integer.MAX_VALUE);
    CachingKmsClient client =
        client(
            KmsProperties.RETRY_MAX_ATTEMPTS, "1",
            KmsProperties.BREAKER_FAILURES, "3",
            KmsProperties.BREAKER_DELAY_MS, "200");
    for (int i = 0; i < 10; i++) {
      assertThatThrownBy(() -> unwrap(client)).isInstanceOf(KmsUnavailableException.class);
    }
    assertThat(CALLS).hasValue(3);
    sleep(250);
    for (int i = 0; i < 10; i++) {
      assertThatThrownBy(() -> unwrap(client)).isInstanceOf(KmsUnavailableException.class);
    }
    assertThat(CALLS).hasValue(4);
  }

  @Test
  void aCallThatEndsByItsTimeIsMadeAgainWhateverItDoesWithTheInterrupt() {
    answer = () -> CALLS.get() == 1 ? interrupted() : key();
    assertThat(unwrap(client(KmsProperties.CALL_TIMEOUT_MS, "100")).remaining()).isEqualTo(16);
    assertThat(CALLS).hasValue(2);
    assertThat(Thread.interrupted()).isFalse();
  }

  @Test
  void aCancelledTaskDoesNotFailTheOthers() throws Exception {
    answer = () -> CALLS.get() == 1 ? interrupted() : key();
    CachingKmsClient client = client(KmsProperties.CALL_TIMEOUT_MS, "60000");
    AtomicReference<Throwable> first = new AtomicReference<>();
    Thread task =
        new Thread(
            () -> {
              try {
                unwrap(client);
              } catch (RuntimeException e) {
                first.set(e);
              }
            });
    task.start();
    awaitCall();
    FutureTask<ByteBuffer> other = new FutureTask<>(() -> unwrap(client));
    new Thread(other).start();
    sleep(100); // now it waits for the first one's answer
    task.interrupt();
    assertThat(other.get(20, TimeUnit.SECONDS).remaining()).isEqualTo(16);
    task.join(20_000);
    assertThat(interrupted).isTrue();
    assertThat(first.get()).isInstanceOf(KmsUnavailableException.class);
    assertThat(CALLS).hasValue(2); // the cancelled one is not made again
    assertThat(client.snapshot()).containsEntry("circuit", "closed");
  }

  @Test
  void aCancelledTaskStopsWaiting() throws Exception {
    CountDownLatch gate = new CountDownLatch(1);
    answer =
        () -> {
          try {
            gate.await();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
          return key();
        };
    CachingKmsClient client = client();
    Thread loader = new Thread(() -> unwrap(client));
    loader.start();
    awaitCall();
    FutureTask<ByteBuffer> waiter = new FutureTask<>(() -> unwrap(client));
    Thread waiting = new Thread(waiter);
    waiting.start();
    sleep(100);
    waiting.interrupt();
    assertThatThrownBy(() -> waiter.get(5, TimeUnit.SECONDS))
        .hasCauseInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("interrupted");
    gate.countDown();
    loader.join();
  }

  @Test
  void aCancelledTaskDoesNotWaitForTheNextAttempt() throws Exception {
    failFirst(Integer.MAX_VALUE);
    CachingKmsClient client =
        client(
            KmsProperties.RETRY_INITIAL_DELAY_MS, "20000",
            KmsProperties.RETRY_MAX_DELAY_MS, "20000");
    FutureTask<ByteBuffer> work = new FutureTask<>(() -> unwrap(client));
    Thread task = new Thread(work);
    task.start();
    awaitCall();
    sleep(100);
    task.interrupt();
    assertThatThrownBy(() -> work.get(10, TimeUnit.SECONDS))
        .hasCauseInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("'k' was interrupted");
  }

  @Test
  void aCachedKeyNeedsNoKms() {
    CachingKmsClient client =
        client(KmsProperties.RETRY_MAX_ATTEMPTS, "1", KmsProperties.BREAKER_FAILURES, "1");
    unwrap(client);
    failFirst(Integer.MAX_VALUE);
    assertThatThrownBy(() -> client.unwrapKey(ByteBuffer.wrap(new byte[] {9}), "k"))
        .isInstanceOf(KmsUnavailableException.class);
    assertThat(unwrap(client).remaining()).isEqualTo(16);
  }

  private static void sleep(long ms) {
    try {
      Thread.sleep(ms);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
