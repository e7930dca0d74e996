package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ResilienceTest {
  private static final AtomicInteger CALLS = new AtomicInteger();
  private static volatile Supplier<ByteBuffer> answer;

  /** A double of a KMS that answers as told. */
  public static final class ScriptedKms implements KeyManagementClient {
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

    @Override
    public void initialize(Map<String, String> properties) {}

    @Override
    public String toString() {
      return "scripted KMS";
    }
  }

  @BeforeEach
  void reset() {
    CALLS.set(0);
    answer = () -> ByteBuffer.wrap(new byte[16]);
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
    return new KmsUnavailableException("scripted KMS cannot be reached", "wait");
  }

  private static void failFirst(int failures) {
    answer =
        () -> {
          if (CALLS.get() <= failures) {
            throw down();
          }
          return ByteBuffer.wrap(new byte[16]);
        };
  }

  @Test
  void anUnavailableKmsIsAskedAgain() {
    failFirst(3);
    CachingKmsClient client = client();
    assertThat(unwrap(client).remaining()).isEqualTo(16);
    assertThat(CALLS).hasValue(4);
    assertThat(client.metrics().unwrapCalls()).isEqualTo(4);
    assertThat(client.metrics().retries()).isEqualTo(3);
    assertThat(client.metrics().errors()).isEqualTo(3);
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
    answer =
        () -> {
          throw new AccessDeniedException("no", "ask your administrator");
        };
    CachingKmsClient client = client();
    for (int i = 0; i < 20; i++) {
      assertThatThrownBy(() -> unwrap(client)).isInstanceOf(AccessDeniedException.class);
    }
    assertThat(CALLS).hasValue(20); // and it opens no circuit
    assertThat(client.snapshot()).containsEntry("circuit", "closed");
  }

  @Test
  void anotherClientsNetworkErrorIsTransientAndOthersAreNot() {
    answer =
        () -> {
          if (CALLS.get() == 1) {
            throw new IllegalStateException("sdk", new SocketTimeoutException("read"));
          }
          throw new IllegalStateException("broken");
        };
    assertThatThrownBy(() -> unwrap(client()))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("scripted KMS could not unwrap with key 'k'")
        .hasMessageContaining("broken");
    assertThat(CALLS).hasValue(2);
  }

  @Test
  void aHangingCallEndsAndIsMadeAgain() {
    answer =
        () -> {
          if (CALLS.get() == 1) {
            sleep(60_000);
          }
          return ByteBuffer.wrap(new byte[16]);
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
        .hasMessageContaining("scripted KMS did not answer for key 'k'")
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
        .hasMessageContaining("300 ms in all");
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
        .hasMessageContaining("scripted KMS was not asked for key 'k': its last 3 calls failed");
    assertThat(CALLS).hasValue(3);
    assertThat(client.snapshot()).containsEntry("circuit", "open");

    answer = () -> ByteBuffer.wrap(new byte[16]);
    sleep(450);
    assertThat(unwrap(client).remaining()).isEqualTo(16);
    assertThat(client.snapshot()).containsEntry("circuit", "closed");
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
