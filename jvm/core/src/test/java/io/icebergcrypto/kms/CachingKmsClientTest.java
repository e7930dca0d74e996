package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.kms.config.KmsProperties;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class CachingKmsClientTest {
  private static final AtomicInteger UNWRAPS = new AtomicInteger();
  private static volatile CountDownLatch gate = new CountDownLatch(0);
  private static volatile Throwable failure;

  /**
   * A double of a KMS: a wrapped key is the key behind one byte. Counts, waits and fails as told.
   */
  public static final class CountingKms implements KeyManagementClient {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      return ByteBuffer.allocate(1 + key.remaining()).put((byte) 'w').put(key).flip();
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      UNWRAPS.incrementAndGet();
      try {
        gate.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      if (failure instanceof Error error) {
        throw error;
      }
      if (failure != null) {
        throw (RuntimeException) failure;
      }
      byte[] key = KeyCache.copyOf(wrappedKey);
      return ByteBuffer.wrap(key, 1, key.length - 1).slice();
    }

    @Override
    public void initialize(Map<String, String> properties) {}
  }

  /** A double of a KMS that gives back another key than it was given. */
  public static final class MixingKms implements KeyManagementClient {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      return ByteBuffer.allocate(key.remaining());
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      return wrappedKey;
    }

    @Override
    public void initialize(Map<String, String> properties) {}
  }

  private static CachingKmsClient client(long ttlMs) {
    return KmsClients.create(
        Map.of(
            KmsProperties.KMS_IMPL, CountingKms.class.getName(),
            KmsProperties.CACHE_TTL_MS, String.valueOf(ttlMs)));
  }

  private static ByteBuffer wrapped(int key) {
    return ByteBuffer.wrap(new byte[] {'w', (byte) key, (byte) key});
  }

  @AfterEach
  void reset() {
    UNWRAPS.set(0);
    gate = new CountDownLatch(0);
    failure = null;
  }

  @Test
  void aKeyIsUnwrappedOnce() {
    CachingKmsClient client = client(60_000);
    for (int i = 0; i < 5; i++) {
      assertThat(client.unwrapKey(wrapped(7), "k")).isEqualTo(ByteBuffer.wrap(new byte[] {7, 7}));
    }
    assertThat(UNWRAPS).hasValue(1);
    assertThat(client.metrics().unwrapCalls()).isEqualTo(1);
    assertThat(client.metrics().misses()).isEqualTo(1);
    assertThat(client.metrics().hits()).isEqualTo(4);
  }

  @Test
  void aKmsThatUnwrapsOtherBytesIsFoundByItsCheck() {
    CachingKmsClient client =
        KmsClients.create(Map.of(KmsProperties.KMS_IMPL, MixingKms.class.getName()));
    assertThatThrownBy(() -> client.check("k1"))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("unwraps other bytes than it wrapped under key 'k1'", "hint:");
  }

  @Test
  void theWrappingKeyIsPartOfWhatIsCached() {
    CachingKmsClient client = client(60_000);
    client.unwrapKey(wrapped(7), "k");
    client.unwrapKey(wrapped(7), "other");
    assertThat(UNWRAPS).hasValue(2);
  }

  @Test
  void whatWasWrappedHereNeedsNoCallToUnwrap() {
    CachingKmsClient client = client(60_000);
    ByteBuffer key = ByteBuffer.wrap(new byte[] {1, 2, 3});
    ByteBuffer wrapped = client.wrapKey(key.duplicate(), "k");
    assertThat(client.unwrapKey(wrapped, "k")).isEqualTo(key);
    assertThat(UNWRAPS).hasValue(0);
  }

  @Test
  void callersGetCopies() {
    CachingKmsClient client = client(60_000);
    for (int i = 0; i < 2; i++) { // of the answer of the KMS, and of the cache
      client.unwrapKey(wrapped(7), "k").put(0, (byte) 0);
      assertThat(client.unwrapKey(wrapped(7), "k").get(0)).isEqualTo((byte) 7);
    }
  }

  @Test
  void threadsThatAskAtOnceShareOneCall() throws Exception {
    CachingKmsClient client = client(60_000);
    gate = new CountDownLatch(1);
    List<Thread> asking = new CopyOnWriteArrayList<>();
    ExecutorService threads =
        Executors.newFixedThreadPool(
            16,
            work -> {
              Thread thread = new Thread(work);
              asking.add(thread);
              return thread;
            });
    List<Future<ByteBuffer>> answers = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      answers.add(threads.submit(() -> client.unwrapKey(wrapped(7), "k")));
    }
    // all of them have asked: one waits for the KMS, the others for that one's answer
    while (UNWRAPS.get() == 0 || !asking.stream().allMatch(CachingKmsClientTest::waits)) {
      Thread.onSpinWait();
    }
    gate.countDown();
    for (Future<ByteBuffer> answer : answers) {
      assertThat(answer.get()).isEqualTo(ByteBuffer.wrap(new byte[] {7, 7}));
    }
    threads.shutdown();
    assertThat(UNWRAPS).hasValue(1);
  }

  private static boolean waits(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TIMED_WAITING;
  }

  @Test
  void aFailureIsNotKept() {
    CachingKmsClient client = client(60_000);
    failure = new KmsUnavailableException("down", "wait");
    assertThatThrownBy(() -> client.unwrapKey(wrapped(7), "k"))
        .isInstanceOf(KmsUnavailableException.class);
    failure = null;
    assertThat(client.unwrapKey(wrapped(7), "k").get(0)).isEqualTo((byte) 7);
    assertThat(client.metrics().errors()).isEqualTo(5); // each attempt
  }

  @Test
  void theErrorOfAForeignClientNamesKeyAndClient() {
    CachingKmsClient client = client(60_000);
    failure = new IllegalStateException("quota");
    assertThatThrownBy(() -> client.unwrapKey(wrapped(7), "k9"))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("'k9'")
        .hasMessageContaining("quota")
        .hasCauseInstanceOf(IllegalStateException.class);
  }

  /** What a cloud's library of another version throws, by itself or behind a thread of its own. */
  static List<Throwable> linkageErrors() {
    return List.of(
        new NoClassDefFoundError("com/cloud/Login"),
        new NoSuchMethodError("'void com.cloud.Login.to(int)'"),
        new NoSuchFieldError("LOGIN"),
        new AbstractMethodError("com.cloud.Login"),
        new IncompatibleClassChangeError("com.cloud.Login"),
        new UnsupportedClassVersionError("com/cloud/Login"),
        new ExceptionInInitializerError("com.cloud.Login"),
        new IllegalStateException("login", new NoSuchMethodError("com.cloud.Login")),
        new KmsUnavailableException("x", "y", new NoSuchMethodError("com.cloud.Login")));
  }

  @ParameterizedTest
  @MethodSource("linkageErrors")
  void aLibraryThatDoesNotFitIsAWrongConfiguration(Throwable error) {
    failure = error;
    assertThatThrownBy(() -> client(0).unwrapKey(wrapped(7), "k"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(CountingKms.class.getName())
        .hasMessageContaining("spark.jars")
        .satisfies(
            e ->
                assertThat(e.getCause() instanceof LinkageError)
                    .isEqualTo(!(error instanceof NoClassDefFoundError)));
    assertThat(UNWRAPS).hasValue(1); // it is not tried again
  }

  @Test
  void theErrorOfALibraryThatDoesNotFitNamesTheOneThatDoes() {
    String aws = AwsKmsClient.class.getName();
    assertThat(KmsType.missingLibrary(aws, new NoSuchMethodError("x")))
        .hasMessageContaining("a library in a version that does not fit")
        .hasMessageContaining("Add org.apache.iceberg:iceberg-aws-bundle:1.12.0 to spark.jars")
        .hasMessageContaining("take other versions of it off the class path");
  }

  @Test
  void zeroTurnsTheCacheOff() {
    CachingKmsClient client = client(0);
    client.unwrapKey(wrapped(7), "k");
    client.unwrapKey(wrapped(7), "k");
    assertThat(UNWRAPS).hasValue(2);
    assertThat(client.snapshot()).containsEntry("cached_keys", 0);
  }

  @Test
  void whatIsNotUsedIsClosedAndComesBack() throws InterruptedException {
    CachingKmsClient client = client(60_000);
    client.unwrapKey(wrapped(7), "k");
    LocalKms local = client.local();
    int before = LocalKms.count();
    local.closeIfIdle(60_000);
    assertThat(local.isClosed()).isFalse();
    Thread.sleep(5);
    local.closeIfIdle(1);
    assertThat(local.isClosed()).isTrue();
    assertThat(LocalKms.count()).isEqualTo(before - 1);
    client.unwrapKey(wrapped(7), "k");
    assertThat(UNWRAPS).hasValue(2);
    assertThat(client.metrics().unwrapCalls()).isEqualTo(2); // goes on counting
  }

  @ParameterizedTest
  @ValueSource(strings = {"closed", "closed while it loads", "another key", "timer"})
  void keysAreOverwrittenInTheEnd(String by, @TempDir Path folder) throws Exception {
    byte[] masked = new byte[32]; // the test itself keeps the key under a mask only
    new SecureRandom().nextBytes(masked);
    AtomicLong clock = new AtomicLong();
    AtomicInteger looks = new AtomicInteger();
    KeyCache cache =
        new KeyCache(
            by.equals("timer") ? 3_000 : 60_000,
            () -> {
              looks.incrementAndGet();
              return by.equals("timer") ? System.nanoTime() : clock.get();
            });
    ByteBuffer loaded = ByteBuffer.wrap(unmasked(masked));
    boolean isLate = by.equals("closed while it loads");
    Supplier<ByteBuffer> load =
        () -> {
          if (isLate) {
            cache.close();
          }
          return loaded;
        };
    Arrays.fill(cache.get("k", wrapped(5), load, new KmsMetrics()).array(), (byte) 0);
    Arrays.fill(loaded.array(), (byte) 0);
    int before = looks.get();
    assertThat(heapContains(folder.resolve("before.hprof"), masked)).isEqualTo(!isLate);
    switch (by) {
      case "closed while it loads" -> {}
      case "closed" -> cache.close();
      case "another key" -> {
        clock.set(60_000_000_000L);
        cache.put("k", wrapped(6), wrapped(6));
      }
      default -> {
        while (looks.get() == before) { // nobody but the timer looks at the clock now
          Thread.sleep(20);
        }
        Thread.sleep(200);
      }
    }
    assertThat(heapContains(folder.resolve("after.hprof"), masked)).isFalse();
  }

  private static byte[] unmasked(byte[] masked) {
    byte[] key = masked.clone();
    for (int i = 0; i < key.length; i++) {
      key[i] ^= 0x5a;
    }
    return key;
  }

  /** Dumps this JVM's heap, with what is garbage by now, and looks for a key. */
  private static boolean heapContains(Path dump, byte[] masked) throws IOException {
    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
        .dumpHeap(dump.toString(), false);
    byte[] heap = Files.readAllBytes(dump);
    for (int at = 0; at <= heap.length - masked.length; at++) {
      int i = 0;
      while (i < masked.length && (heap[at + i] ^ 0x5a) == masked[i]) {
        i++;
      }
      if (i == masked.length) {
        Arrays.fill(heap, (byte) 0); // for the next dump
        return true;
      }
    }
    return false;
  }

  @Test
  void copiesInOneJvmShareTheCache() throws Exception {
    CachingKmsClient client = client(60_000);
    client.unwrapKey(wrapped(7), "k");
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(client);
    }
    CachingKmsClient copy;
    try (ObjectInputStream in =
        new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
      copy = (CachingKmsClient) in.readObject();
    }
    copy.unwrapKey(wrapped(7), "k");
    assertThat(UNWRAPS).hasValue(1);
  }

  @Test
  void checkGoesPastTheCache() {
    CachingKmsClient client = client(60_000);
    client.check("k");
    client.check("k");
    assertThat(UNWRAPS).hasValue(2);
  }

  @Test
  void whoHasTheSameSettingsWithoutACatalogSharesAClient() {
    Map<String, String> settings =
        Map.of(KmsProperties.KMS_IMPL, CountingKms.class.getName(), "parquet.rows", "1");
    CachingKmsClient client = KmsClients.shared(settings);
    assertThat(KmsClients.shared(KmsClients.ofKms(settings))).isSameAs(client);
    assertThat(
            KmsClients.shared(
                Map.of(
                    KmsProperties.KMS_IMPL,
                    CountingKms.class.getName(),
                    KmsProperties.CACHE_TTL_MS,
                    "0")))
        .isNotSameAs(client);
    assertThatThrownBy(() -> KmsClients.shared(Map.of("parquet.rows", "1")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("spark.hadoop.iceberg-crypto.encryption.kms-type");
  }

  @Test
  void aConfigurationThatCannotBeIsRefused() {
    assertRefused(Map.of(), "No KMS is configured");
    assertRefused(Map.of(KmsProperties.KMS_TYPE, "keystoer"), "keystoer");
    assertRefused(
        Map.of(KmsProperties.KMS_TYPE, "keystore", KmsProperties.KMS_IMPL, "a.B"), "both set");
    assertRefused(Map.of(KmsProperties.KMS_IMPL, "no.such.Client"), "no.such.Client");
    assertRefused(Map.of(KmsProperties.KMS_IMPL, "java.lang.String"), "java.lang.String");
    assertRefused(
        Map.of(KmsProperties.KMS_TYPE, "keystore", KmsProperties.CACHE_TTL_MS, "an hour"),
        "an hour");
    assertRefused(
        Map.of(KmsProperties.KMS_TYPE, "keystore", KmsProperties.CACHE_TTL_MS, "-1"), "-1");
    for (String property :
        List.of(
            KmsProperties.RETRY_MAX_ATTEMPTS,
            KmsProperties.RETRY_INITIAL_DELAY_MS,
            KmsProperties.RETRY_MAX_DELAY_MS,
            KmsProperties.RETRY_TIMEOUT_MS,
            KmsProperties.CALL_TIMEOUT_MS)) {
      assertRefused(Map.of(KmsProperties.KMS_TYPE, "keystore", property, "0"), property);
      assertRefused(Map.of(KmsProperties.KMS_TYPE, "keystore", property, "soon"), "soon");
    }
    assertRefused(
        Map.of(KmsProperties.KMS_TYPE, "keystore", KmsProperties.BREAKER_FAILURES, "-1"), "-1");
  }

  private static void assertRefused(Map<String, String> properties, String message) {
    assertThatThrownBy(() -> KmsClients.create(properties))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(message)
        .hasMessageContaining("hint: ");
  }
}
