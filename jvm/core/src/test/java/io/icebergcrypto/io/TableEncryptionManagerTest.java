package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.Gson;
import io.icebergcrypto.metadata.KeyEntries;
import io.icebergcrypto.metadata.KeyedFile;
import io.icebergcrypto.testing.PlainKms;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager.FileEncryptionKeys;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Test;

/** What a manager learns and forgets, while others use it. */
class TableEncryptionManagerTest {
  private static final long HOUR_MS = 3_600_000;
  private static final AtomicInteger UNWRAPPED = new AtomicInteger();

  private final TableEncryptionManager manager = manager(List.of());

  private static TableEncryptionManager manager(List<EncryptedKey> keys) {
    return new TableEncryptionManager("lake.db.t", keys, "k1", 16, new OpenKms());
  }

  /** The keys of that many manifest lists that another client wrote, with their KEK. */
  private static List<EncryptedKey> lists(int count) {
    TableEncryptionManager other = manager(List.of());
    List<EncryptedKey> keys = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      FileEncryptionKeys added = other.registerKeyMetadata(fileKey(other));
      if (i == 0) {
        keys.add(added.keyEncryptionKey());
      }
      keys.add(added.fileKey());
    }
    return keys;
  }

  private static NativeEncryptionKeyMetadata fileKey(TableEncryptionManager manager) {
    return manager.encrypt(new InMemoryOutputFile("file:/t/snap-1.avro")).keyMetadata();
  }

  /** All that a manager's entries say. */
  private static Set<String> texts(TableEncryptionManager manager) {
    return manager.keys().stream()
        .map(key -> new Gson().toJson(KeyEntries.json(key)))
        .collect(Collectors.toSet());
  }

  private static List<String> ids(List<EncryptedKey> keys) {
    return keys.stream().map(EncryptedKey::keyId).toList();
  }

  @Test
  void anyNumberOfKeysIsLearned() {
    List<EncryptedKey> keys = lists(2000);
    manager.learn(keys, 16);
    assertThat(ids(manager.keys())).containsExactlyInAnyOrderElementsOf(ids(keys));
    assertThat(manager.decryptKeyMetadata(list(keys.get(2000).keyId())).remaining()).isPositive();
  }

  /** Iceberg's own manager would keep it for an hour, regardless of the cache's time to live. */
  @Test
  void aKekIsKeptByTheCacheAlone() {
    List<EncryptedKey> keys = lists(1);
    manager.learn(keys, 16);
    for (int i = 0; i < 3; i++) {
      int before = UNWRAPPED.get();
      manager.decryptKeyMetadata(list(keys.get(1).keyId()));
      assertThat(UNWRAPPED).hasValueGreaterThan(before);
      before = UNWRAPPED.get();
      manager.registerKeyMetadata(fileKey(manager));
      assertThat(UNWRAPPED).hasValueGreaterThan(before);
    }
  }

  @Test
  void aKeyThatIsListedTwiceIsOneKey() {
    List<EncryptedKey> keys = lists(1);
    List<EncryptedKey> twice = new ArrayList<>(keys);
    twice.addAll(keys);
    TableEncryptionManager made = manager(twice);
    manager.learn(twice, 16);
    for (TableEncryptionManager each : List.of(made, manager)) {
      assertThat(ids(each.keys())).containsExactlyInAnyOrderElementsOf(ids(keys));
      each.learn(keys, 16);
      assertThat(each.decryptKeyMetadata(list(keys.get(1).keyId())).remaining()).isPositive();
    }
  }

  @Test
  void aKeyThatIsInNoMetadataIsForgottenAfterAnHour() {
    List<EncryptedKey> keys = lists(3);
    List<EncryptedKey> left = List.of(keys.get(0), keys.get(3));
    long now = System.currentTimeMillis();
    manager.learn(keys, 16, now);
    manager.learn(left, 16, now + 9 * HOUR_MS); // it was there until now
    assertThat(ids(manager.keys())).containsExactlyInAnyOrderElementsOf(ids(keys));
    manager.learn(left, 16, now + 10 * HOUR_MS);
    assertThat(ids(manager.keys())).containsExactlyInAnyOrderElementsOf(ids(keys));
    manager.learn(left, 16, now + 10 * HOUR_MS + 1);
    assertThat(ids(manager.keys())).containsExactlyInAnyOrderElementsOf(ids(left));

    manager.learn(keys, 16, now + 11 * HOUR_MS); // as a transaction that is still open
    manager.decryptKeyMetadata(list(keys.get(1).keyId()));
    manager.learn(left, 16, now + 11 * HOUR_MS + 1);
    assertThat(ids(manager.keys())).containsExactlyInAnyOrderElementsOf(ids(keys));
  }

  @Test
  void thousandsOfKeysTravelAsBytesAndNotAsObjects() throws IOException, ClassNotFoundException {
    List<EncryptedKey> keys = lists(2000);
    keys.add(new BaseEncryptedKey("other", ByteBuffer.allocate(3), null, Map.of("ä", "")));
    byte[] bytes = SerializationUtil.serializeToBytes(manager(keys));
    assertThat(new String(bytes, StandardCharsets.ISO_8859_1)).doesNotContain("BaseEncryptedKey");
    TableEncryptionManager arrived = SerializationUtil.deserializeFromBytes(bytes);
    assertThat(texts(arrived)).isEqualTo(texts(manager(keys)));
    assertThat(arrived.decryptKeyMetadata(list(keys.get(2000).keyId())).remaining()).isPositive();
  }

  /** An entry that counts how often it is asked for anything. */
  private record Counted(EncryptedKey key, AtomicInteger asked) implements EncryptedKey {
    private EncryptedKey counted() {
      asked.incrementAndGet();
      return key;
    }

    @Override
    public String keyId() {
      return counted().keyId();
    }

    @Override
    public ByteBuffer encryptedKeyMetadata() {
      return counted().encryptedKeyMetadata();
    }

    @Override
    public String encryptedById() {
      return counted().encryptedById();
    }

    @Override
    public Map<String, String> properties() {
      return counted().properties();
    }
  }

  @Test
  void aCommitDoesNotLookAgainAtTheEntriesThatItWasBuiltFrom() {
    AtomicInteger asked = new AtomicInteger();
    List<EncryptedKey> keys = new ArrayList<>();
    lists(100).forEach(key -> keys.add(new Counted(key, asked)));
    manager.learnInForce(keys, "k1", 16);
    asked.set(0);
    List<EncryptedKey> more = new ArrayList<>(keys);
    more.addAll(lists(1));
    manager.learn(more, 16);
    assertThat(asked).hasValue(0);
    assertThat(ids(manager.keys())).containsExactlyInAnyOrderElementsOf(ids(more));
  }

  @Test
  void anEntryThatWasSeenBeforeItWasInForceTakesItsPlaceThen() {
    List<EncryptedKey> keys = lists(1);
    EncryptedKey kek = keys.get(0);
    EncryptedKey rewrapped =
        new BaseEncryptedKey(kek.keyId(), ByteBuffer.allocate(16), "k2", kek.properties());
    List<EncryptedKey> rotated = List.of(rewrapped, keys.get(1));
    manager.learnInForce(keys, "k1", 16);
    manager.learn(rotated, 16);
    assertThat(manager.key(kek.keyId()).encryptedById()).isEqualTo("k1");
    manager.learnInForce(rotated, "k2", 16);
    assertThat(manager.key(kek.keyId()).encryptedById()).isEqualTo("k2");
  }

  /** Iceberg 1.11 adds it to the metadata when its transaction is committed. */
  @Test
  void aKeyThatWasInNoMetadataYetIsNotForgotten() {
    manager.registerKeyMetadata(fileKey(manager));
    manager.registerStatistics("file:/t/1.stats", fileKey(manager));
    List<EncryptedKey> keys = List.copyOf(manager.keys());
    long now = System.currentTimeMillis();
    manager.learn(List.of(), 16, now);
    manager.learn(List.of(), 16, now + 2 * HOUR_MS);
    assertThat(ids(manager.keys())).hasSize(3).containsExactlyInAnyOrderElementsOf(ids(keys));
    assertThat(manager.statisticsKey("file:/t/1.stats")).isNotNull();
    manager.registerKeyMetadata(fileKey(manager)); // by the same KEK
    long later = now + 24 * 8 * HOUR_MS;
    manager.learn(List.of(), 16, later); // attempts that came to nothing
    assertThat(manager.keys()).hasSize(2);
    assertThat(manager.statisticsKey("file:/t/1.stats")).isNull();
    manager.learn(List.of(), 16, later + 24 * 8 * HOUR_MS);
    assertThat(manager.keys()).isEmpty();
  }

  @Test
  void aStatisticsFileIsForgottenWithItsKey() {
    manager.registerStatistics("file:/t/1.stats", fileKey(manager));
    assertThat(manager.statisticsKey("file:/t/1.stats")).isNotNull();
    long now = System.currentTimeMillis();
    manager.learn(manager.keys(), 16, now);
    manager.learn(List.of(), 16, now);
    manager.learn(List.of(), 16, now + HOUR_MS);
    assertThat(manager.statisticsKey("file:/t/1.stats")).isNotNull();
    manager.learn(List.of(), 16, now + HOUR_MS + 1);
    assertThat(manager.statisticsKey("file:/t/1.stats")).isNull();
    assertThat(manager.keys()).isEmpty();
  }

  @Test
  void theDataKeyLengthIsLearned() {
    manager.learn(List.of(), 32);
    assertThat(manager.dataKeyLength()).isEqualTo(32);
    assertThat(fileKey(manager).encryptionKey().remaining()).isEqualTo(32);
    FileEncryptionKeys first = manager.registerKeyMetadata(fileKey(manager));
    assertThat(first.keyEncryptionKey().encryptedKeyMetadata().remaining())
        .as("the KEK, which this KMS wraps as it is")
        .isEqualTo(32);
    manager.learn(manager.keys(), 16);
    FileEncryptionKeys second = manager.registerKeyMetadata(fileKey(manager));
    assertThat(second.keyEncryptionKey().keyId()).isEqualTo(first.keyEncryptionKey().keyId());
    assertThat(fileKey(manager).encryptionKey().remaining()).isEqualTo(16);
    for (FileEncryptionKeys keys : List.of(first, second)) {
      ManifestListFile list = list(keys.fileKey().keyId());
      assertThat(manager.decryptKeyMetadata(list).remaining()).isPositive();
    }
  }

  @Test
  void aRotationIsLearnedAndOlderMetadataUndoesNothing() {
    List<EncryptedKey> keys = lists(1);
    manager.learn(keys, 16);
    EncryptedKey kek = keys.get(0);
    EncryptedKey rewrapped =
        new BaseEncryptedKey(kek.keyId(), ByteBuffer.allocate(0), "k2", kek.properties());
    manager.learnInForce(List.of(rewrapped, keys.get(1)), "k2", 16);
    assertThat(manager.tableKeyId()).isEqualTo("k2");
    assertThat(manager.key(kek.keyId()).encryptedById()).isEqualTo("k2");
    manager.learn(keys, 16); // as a transaction that began before does
    assertThat(manager.tableKeyId()).isEqualTo("k2");
    assertThat(manager.key(kek.keyId()).encryptedById()).isEqualTo("k2");
  }

  /** What began before a rotation, on a catalog where that is not a conflict. */
  @Test
  void eachKekIsUnwrappedWithItsOwnMasterKey() {
    List<String> asked = new ArrayList<>();
    KeyManagementClient kms =
        new OpenKms() {
          private static final long serialVersionUID = 1L;

          @Override
          public ByteBuffer unwrapKey(ByteBuffer wrapped, String wrappingKeyId) {
            asked.add(wrappingKeyId);
            return super.unwrapKey(wrapped, wrappingKeyId);
          }
        };
    List<EncryptedKey> keys = lists(1); // under k1
    TableEncryptionManager of2 = new TableEncryptionManager("lake.db.t", keys, "k2", 16, kms);
    assertThat(of2.decryptKeyMetadata(list(keys.get(1).keyId())).remaining()).isPositive();
    assertThat(asked).containsExactly("k1");
    assertThat(of2.registerKeyMetadata(fileKey(of2)).keyEncryptionKey().encryptedById())
        .isEqualTo("k2");
  }

  /**
   * Of keys that come and go, the map of the superclass would lose some to readers without lock.
   */
  @Test
  void readersAndLearnersDoNotDisturbEachOther() throws Exception {
    List<EncryptedKey> stay = lists(20);
    manager.learn(stay, 16);
    AtomicBoolean done = new AtomicBoolean();
    ExecutorService threads = Executors.newFixedThreadPool(4);
    List<Future<?>> readers = new ArrayList<>();
    for (int i = 0; i < 3; i++) {
      readers.add(
          threads.submit(
              () -> {
                while (!done.get()) {
                  for (EncryptedKey key : stay.subList(1, stay.size())) {
                    manager.decryptKeyMetadata(list(key.keyId()));
                  }
                  assertThat(ids(manager.keys())).containsAll(ids(stay));
                }
              }));
    }
    Future<?> learner =
        threads.submit(
            () -> {
              long now = System.currentTimeMillis();
              for (int round = 0; round < 60; round++) {
                List<EncryptedKey> more = new ArrayList<>(stay);
                String prefix = round + "-";
                IntStream.range(0, 3000).forEach(i -> more.add(filler(prefix + i)));
                manager.learn(more, 16, now);
                manager.registerKeyMetadata(fileKey(manager));
                now += 2 * HOUR_MS;
              }
            });
    learner.get();
    done.set(true);
    for (Future<?> reader : readers) {
      reader.get();
    }
    threads.shutdown();
  }

  @Test
  void aKeyThatIsNotKnownIsAnError() {
    assertThatThrownBy(() -> manager.decryptKeyMetadata(list("none")))
        .isInstanceOf(RuntimeException.class);
  }

  private static EncryptedKey filler(String id) {
    return new BaseEncryptedKey(id, ByteBuffer.allocate(16), "kek", Map.of());
  }

  private static KeyedFile list(String keyId) {
    return new KeyedFile("file:/t/snap-1.avro", keyId);
  }

  /** Counts. */
  private static class OpenKms extends PlainKms {
    private static final long serialVersionUID = 1L;

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      UNWRAPPED.incrementAndGet();
      return super.unwrapKey(wrappedKey, wrappingKeyId);
    }
  }
}
