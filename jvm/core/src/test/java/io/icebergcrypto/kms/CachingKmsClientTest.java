package io.icebergcrypto.kms;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.testing.PlainKms;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class CachingKmsClientTest {
  private static final byte MASK = 0x5a;
  private static final AtomicInteger UNWRAPS = new AtomicInteger();
  private static volatile CountDownLatch gate = new CountDownLatch(0);
  private static volatile Throwable failure;

  /**
   * A double of a KMS: a wrapped key is the key behind one byte. Counts, waits and fails as told.
   */
  public static final class CountingKms extends PlainKms {
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
  }

  /** A double of a KMS that gives back another key than it was given. */
  public static final class MixingKms extends PlainKms {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      return ByteBuffer.allocate(key.remaining());
    }
  }

  /** Another's own class, which tells its secret: a record would. */
  public static final class TalkingKms extends PlainKms {
    private static final long serialVersionUID = 1L;

    @Override
    public String toString() {
      return "TalkingKms[token=secret]";
    }
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
    assertThat(client.metrics().snapshot()).containsEntry("misses", 1L);
    assertThat(client.metrics().snapshot()).containsEntry("hits", 4L);
  }

  @Test
  void anothersOwnClassIsNamedByItsClass() {
    String name = TalkingKms.class.getName();
    CachingKmsClient client = KmsClients.create(Map.of(KmsProperties.KMS_IMPL, name));
    assertThat(client).hasToString(name);
    assertThat(client.snapshot()).containsEntry("kms", name);
    assertThat(new BoundKmsClient(null, client)).hasToString(name);
  }

  /** Nobody has to grant the permission to. */
  @Test
  void noKmsIsAskedToMakeKeys() {
    assertThat(client(60_000).supportsKeyGeneration()).isFalse();
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
  void aKeyThatDoesNotComeBackIsNotUsed() {
    CachingKmsClient client =
        KmsClients.create(Map.of(KmsProperties.KMS_IMPL, MixingKms.class.getName()));
    ByteBuffer key = ByteBuffer.wrap(new byte[] {1, 2, 3});
    assertThatThrownBy(() -> UnwrapsAgain.wrapped(client, key, "k1"))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContainingAll("unwraps other bytes than it wrapped under key 'k1'", "hint:");
    assertThat(client.local().cache().size()).isZero();
    CachingKmsClient honest = client(60_000);
    ByteBuffer wrapped = UnwrapsAgain.wrapped(honest, key, "k1");
    assertThat(UNWRAPS).as("past the cache").hasValue(1);
    assertThat(honest.unwrapKey(wrapped, "k1")).isEqualTo(key);
    assertThat(UNWRAPS).hasValue(1);

    CachingKmsClient mixing =
        KmsClients.create(Map.of(KmsProperties.KMS_IMPL, MixingKms.class.getName()));
    BoundKmsClient bound = new BoundKmsClient("a table's UUID", mixing);
    assertThatThrownBy(() -> UnwrapsAgain.wrapped(bound, key, "k1"))
        .as("of a table's own, too")
        .isInstanceOf(BadWrappedKeyException.class);
    assertThat(mixing.local().cache().size()).isZero();
  }

  @Test
  void aKeyThatMayBeWrongIsAskedForAgain() {
    CachingKmsClient client = client(60_000);
    client.unwrapKey(wrapped(7), "k");
    for (int i = 0; i < 2; i++) { // that answer is kept
      assertThat(client.unwrapAgain(wrapped(7), "k")).isEqualTo(ByteBuffer.wrap(new byte[] {7, 7}));
      assertThat(client.unwrapKey(wrapped(7), "k")).isEqualTo(ByteBuffer.wrap(new byte[] {7, 7}));
      assertThat(UNWRAPS).hasValue(2 + i);
    }
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
    assertThat(client.metrics().snapshot()).containsEntry("errors", 5L); // each attempt
  }

  @Test
  void theErrorOfAForeignClientNamesKeyAndClient() {
    CachingKmsClient client = client(60_000);
    failure = new IllegalStateException("quota");
    assertThatThrownBy(() -> client.unwrapKey(wrapped(7), "k9"))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("'k9'", "quota")
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
        .hasMessageContainingAll(CountingKms.class.getName(), "spark.jars")
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
        .hasMessageContaining("a library in an incompatible version")
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
    ClientState local = client.local();
    int before = ClientState.count();
    local.closeIfIdle(60_000);
    assertThat(local.isClosed()).isFalse();
    Thread.sleep(5);
    local.closeIfIdle(1);
    assertThat(local.isClosed()).isTrue();
    assertThat(ClientState.count()).isEqualTo(before - 1);
    client.unwrapKey(wrapped(7), "k");
    assertThat(UNWRAPS).hasValue(2);
    assertThat(client.metrics().unwrapCalls()).isEqualTo(2); // goes on counting
  }

  @Test
  void keysAreOverwrittenInTheEnd(@TempDir Path folder) throws Exception {
    List<Cached> all = Arrays.stream(End.values()).map(Cached::new).toList();
    assertThat(inHeap(folder.resolve("before.hprof"), all))
        .containsExactlyInAnyOrder(End.CLOSED, End.ANOTHER_KEY, End.TIMER);
    for (Cached cached : all) {
      cached.end();
    }

    assertThat(inHeap(folder.resolve("after.hprof"), all)).isEmpty();
  }

  /** How a key's time in the cache ends. */
  private enum End {
    CLOSED,
    CLOSED_WHILE_IT_LOADS,
    ANOTHER_KEY,
    TIMER
  }

  /** A cache with one key, which the test itself keeps under a mask only. */
  private static final class Cached {
    private final End end;
    private final byte[] masked = new byte[32];
    private final AtomicLong clock = new AtomicLong();
    private final AtomicInteger looks = new AtomicInteger();
    private final int looksBefore;
    private final KeyCache cache;

    private Cached(End end) {
      this.end = end;
      new SecureRandom().nextBytes(masked);
      this.cache =
          new KeyCache(
              end == End.TIMER ? 3_000 : 60_000,
              () -> {
                looks.incrementAndGet();
                return end == End.TIMER ? System.nanoTime() : clock.get();
              });
      ByteBuffer loaded = ByteBuffer.wrap(masked.clone());
      for (int i = 0; i < masked.length; i++) {
        loaded.put(i, (byte) (masked[i] ^ MASK));
      }

      Supplier<ByteBuffer> load =
          () -> {
            if (end == End.CLOSED_WHILE_IT_LOADS) {
              cache.close();
            }
            return loaded;
          };
      Arrays.fill(cache.get("k", wrapped(5), load, new KmsMetrics()).array(), (byte) 0);
      Arrays.fill(loaded.array(), (byte) 0);
      this.looksBefore = looks.get();
    }

    private void end() throws InterruptedException {
      switch (end) {
        case CLOSED_WHILE_IT_LOADS -> {}
        case CLOSED -> cache.close();
        case ANOTHER_KEY -> {
          clock.set(60_000_000_000L);
          cache.put("k", wrapped(6), wrapped(6));
        }
        default -> {
          while (looks.get() == looksBefore) { // nobody but the timer looks at the clock now
            Thread.sleep(20);
          }
          Thread.sleep(200);
        }
      }
    }

    private boolean isAt(int at, byte[] heap) {
      int i = 0;
      while (i < masked.length && (heap[at + i] ^ MASK) == masked[i]) {
        i++;
      }
      return i == masked.length;
    }
  }

  /** Dumps this JVM's heap, with what is garbage by now, and looks for keys. */
  private static Set<End> inHeap(Path dump, List<Cached> all) throws IOException {
    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
        .dumpHeap(dump.toString(), false);
    boolean[] isFirst = new boolean[256];
    all.forEach(cached -> isFirst[(cached.masked[0] ^ MASK) & 0xff] = true);
    Set<End> found = EnumSet.noneOf(End.class);
    byte[] part = new byte[1 << 20];
    try (RandomAccessFile heap = new RandomAccessFile(dump.toFile(), "r")) {
      // each part begins with the last bytes of the one before: a key may lie across
      for (long from = 0; from < heap.length(); from += part.length - 32) {
        heap.seek(from);
        int length = (int) Math.min(part.length, heap.length() - from);
        heap.readFully(part, 0, length);
        for (int at = 0; at <= length - 32; at++) {
          if (isFirst[part[at] & 0xff]) {
            for (Cached cached : all) {
              if (cached.isAt(at, part)) {
                found.add(cached.end);
              }
            }
          }
        }
      }
    } finally {
      Arrays.fill(part, (byte) 0); // for the next dump
    }

    return found;
  }

  @Test
  void copiesInOneJvmShareTheCache() throws Exception {
    CachingKmsClient client = client(60_000);
    client.unwrapKey(wrapped(7), "k");
    byte[] bytes = SerializationUtil.serializeToBytes(client);
    CachingKmsClient copy = SerializationUtil.deserializeFromBytes(bytes);
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
    assertRefused(Map.of(), "No KMS is configured", KmsProperties.KMS_TYPE);
    assertRefused(
        Map.of(KmsProperties.KMS_TYPE, "keystoer"), "keystoer", KmsProperties.KMS_TYPE, "keystore");
    assertRefused(
        Map.of(KmsProperties.KMS_TYPE, "keystore", KmsProperties.KMS_IMPL, "a.B"),
        "both set",
        KmsProperties.KMS_TYPE,
        KmsProperties.KMS_IMPL);
    assertRefused(
        Map.of(KmsProperties.KMS_IMPL, "no.such.Client"), "no.such.Client", KmsProperties.KMS_IMPL);
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

  private static void assertRefused(Map<String, String> properties, String... words) {
    assertThatThrownBy(() -> KmsClients.create(properties))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(words)
        .hasMessageContaining("hint: ");
  }
}
