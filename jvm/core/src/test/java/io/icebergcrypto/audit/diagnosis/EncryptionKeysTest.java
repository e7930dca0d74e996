package io.icebergcrypto.audit.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.diagnosis.KeyEntry.Kind;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.DownKms;
import io.icebergcrypto.testing.FailingKms;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Which keys a table has, and what the KMS says of them now. */
@ParameterizedClass
@EnumSource(names = {"REST", "HADOOP"})
class EncryptionKeysTest extends LakeFixture {
  private static final long DAY = 86_400_000;

  /** A KMS with an RSA key, of which this process has only the public half. */
  public static final class Asymmetric extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new NotSupportedException("not in this test", "Leave it.");
    }

    @Override
    public boolean authenticatesWrapping(String wrappingKeyId) {
      return false;
    }
  }

  private static List<KeyEntry> of(EncryptionKeys keys, Kind kind) {
    return keys.keys().stream().filter(key -> key.kind() == kind).toList();
  }

  /** Commits as a client without this catalog, which signs nothing and removes no keys. */
  private void addKeys(EncryptedKey... keys) throws IOException {
    Catalog stock = lake.openStock();
    TableOperations ops = ((BaseTable) stock.loadTable(T)).operations();
    TableMetadata.Builder changed = TableMetadata.buildFrom(ops.current());
    for (EncryptedKey key : keys) {
      changed.addEncryptionKey(key);
    }

    ops.commit(ops.current(), changed.build());
    ((Closeable) stock).close();
  }

  private static EncryptedKey entry(
      String id, EncryptedKey like, String by, Map<String, String> properties) {
    return new BaseEncryptedKey(id, like.encryptedKeyMetadata(), by, properties);
  }

  private static EncryptedKey kek(Table table) {
    return TestLake.metadata(table).encryptionKeys().stream()
        .filter(key -> "k1".equals(key.encryptedById()))
        .findFirst()
        .orElseThrow();
  }

  private EncryptedCatalog withKms(Class<?> kms) throws IOException {
    Map<String, String> properties =
        Map.of("encryption.kms-impl", kms.getName(), "encryption.kms.retry.initial-delay-ms", "1");
    return new TestLake(backend, folder, properties).open(Map.of());
  }

  @Test
  void theKeysOfATable() throws IOException {
    Table table = TestLake.createTable(catalog, 2);
    table.updateProperties().set("encryption.data-key-length", "32").commit();
    TestLake.append(table, 3);
    try (EncryptedCatalog off = lake.open(Map.of("encryption.kms.cache.ttl-ms", "0"))) {
      for (EncryptedCatalog any : List.of(catalog, off)) {
        long unwraps = any.context().kms().metrics().unwrapCalls();
        long wraps = any.context().kms().metrics().wrapCalls();
        EncryptionKeys keys = EncryptionKeys.of(any, T);
        assertThat(any.context().kms().metrics().unwrapCalls() - unwraps)
            .as("one KEK")
            .isEqualTo(1);
        assertThat(any.context().kms().metrics().wrapCalls() - wraps).isZero();
        assertThat(keys.kmsCalls()).isEqualTo(1);
        assertThat(keys.kmsProblem()).isNull();
        assertThat(keys.dataKeyLength()).isEqualTo("32");
        assertThat(keys.keys()).allMatch(key -> key.problem() == null);
        assertThat(keys.keys().stream().map(KeyEntry::kind))
            .containsExactly(
                Kind.MASTER, Kind.KEK, Kind.MANIFEST_LIST, Kind.MANIFEST_LIST, Kind.MANIFEST_LIST);
        KeyEntry master = keys.keys().get(0);
        assertThat(master.keyId()).isEqualTo("k1");
        assertThat(master.snapshots()).isEqualTo(3);
        assertThat(master.kmsAnswers()).isTrue();
        assertThat(master.authenticatedWrapping()).isTrue();
        KeyEntry kek = keys.keys().get(1);
        assertThat(kek.keyId()).isEqualTo(kek(table).keyId());
        assertThat(kek.encryptedBy()).isEqualTo("k1");
        assertThat(kek.ageDays()).isZero();
        assertThat(kek.overdue()).isFalse();
        assertThat(kek.kmsAnswers()).isTrue();
        assertThat(kek.keyLength()).isEqualTo(16);
        assertThat(of(keys, Kind.MANIFEST_LIST).stream().map(KeyEntry::keyLength))
            .containsExactlyInAnyOrder(16, 16, 32);
        assertThat(of(keys, Kind.MANIFEST_LIST)).allMatch(key -> key.snapshots() == 1);
      }
    }
  }

  @Test
  void aTableWithoutSnapshotsHasItsFirstKek() {
    TestLake.createTable(catalog, 0);
    EncryptionKeys keys = EncryptionKeys.of(catalog, T);
    assertThat(keys.keys()).hasSize(2).allMatch(key -> key.problem() == null);
    assertThat(keys.kmsCalls()).isEqualTo(1);
  }

  /** A catalog that takes metadata as it is. */
  private EncryptedCatalog trusting(Map<String, String> more) throws IOException {
    Map<String, String> properties = new HashMap<>(more);
    if (backend == Backend.HADOOP) {
      properties.put("encryption.metadata-authentication", "off");
    }

    return lake.open(properties);
  }

  @RepeatedTest(5) // entries have random ids, by which maps order them
  void whatElseMayBeAmongTheKeys() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    EncryptedKey kek = kek(table);
    EncryptedKey list = TestLake.metadata(table).encryptionKeys().get(1);
    String old = String.valueOf(System.currentTimeMillis() - 731 * DAY);
    String retired = String.valueOf(System.currentTimeMillis() - 761 * DAY);
    String later = String.valueOf(System.currentTimeMillis() + 3 * DAY);
    Map<String, String> owner = Map.of("owner", "someone");
    EncryptedKey broken =
        new BaseEncryptedKey(
            "broken", ByteBuffer.wrap(new byte[60]), "k1", Map.of("KEY_TIMESTAMP", old));
    addKeys(
        entry("dead list", list, kek.keyId(), Map.of()),
        entry("retired", kek, "k1", Map.of("KEY_TIMESTAMP", retired)),
        entry("old", kek, "k1", Map.of("KEY_TIMESTAMP", old)),
        entry("later", kek, "k1", Map.of("KEY_TIMESTAMP", later)),
        entry("no time", kek, "k1", Map.of()),
        entry("of k9", kek, "k9", Map.of("KEY_TIMESTAMP", old)),
        broken,
        entry("another's", list, kek.keyId(), owner));
    EncryptedCatalog trusting = trusting(Map.of());
    long calls = calls(trusting);
    EncryptionKeys keys = EncryptionKeys.of(trusting, T);
    assertThat(calls(trusting) - calls)
        .as("KEKs but the dead one, same bytes once, and k9")
        .isEqualTo(4)
        .isEqualTo(keys.kmsCalls());
    assertThat(of(keys, Kind.DEAD).stream().map(KeyEntry::keyId))
        .containsExactlyInAnyOrder("dead list", "retired");
    assertThat(of(keys, Kind.DEAD)).allMatch(key -> key.kmsAnswers() == null);
    assertThat(of(keys, Kind.OTHER).stream().map(KeyEntry::keyId)).containsExactly("another's");
    assertThat(named(keys, "old").overdue()).isTrue();
    assertThat(named(keys, "old").ageDays()).isEqualTo(731);
    assertThat(named(keys, "old").problem()).isNull();
    assertThat(named(keys, kek.keyId()).overdue()).isFalse();
    assertThat(named(keys, "no time").problem()).contains("does not say when");
    assertThat(named(keys, "later").problem()).contains("in the future");
    assertThat(named(keys, "broken").kmsAnswers()).isFalse();
    assertThat(named(keys, "broken").problem()).isNotBlank();
    assertThat(named(keys, "of k9").problem()).contains("k9");
    assertThat(of(keys, Kind.MASTER).stream().map(KeyEntry::keyId)).containsExactly("k1", "k9");
    assertThat(named(keys, "k9").kmsAnswers()).isFalse();
    assertThat(named(keys, "k1").kmsAnswers()).isTrue();
  }

  private static long calls(EncryptedCatalog catalog) {
    return catalog.context().kms().metrics().unwrapCalls()
        + catalog.context().kms().metrics().wrapCalls();
  }

  private static KeyEntry named(EncryptionKeys keys, String id) {
    return keys.keys().stream().filter(key -> key.keyId().equals(id)).findFirst().orElseThrow();
  }

  @Test
  void anotherLimitForTheAge() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    String old = String.valueOf(System.currentTimeMillis() - 100 * DAY);
    addKeys(entry("old", kek(table), "k1", Map.of("KEY_TIMESTAMP", old)));
    try (EncryptedCatalog usual = trusting(Map.of())) {
      assertThat(named(EncryptionKeys.of(usual, T), "old").overdue()).isFalse();
    }

    try (EncryptedCatalog strict = trusting(Map.of("encryption.kek.max-age-days", "90"))) {
      EncryptionKeys keys = EncryptionKeys.of(strict, T);
      assertThat(named(keys, "old").overdue()).isTrue();
      assertThat(keys.kekMaxAgeDays()).isEqualTo(90);
    }

    for (String bad : List.of("0", "731", "-1", "soon", "")) {
      assertThatThrownBy(() -> lake.open(Map.of("encryption.kek.max-age-days", bad)))
          .hasMessageContaining("encryption.kek.max-age-days is '" + bad + "'")
          .hasMessageContaining("hint: Use a number of days from 1 to 730");
    }
  }

  @Test
  void aKmsThatIsDownIsAskedForOneKeyAndTheRowsCome() throws IOException {
    TestLake.createTable(catalog, 3);
    try (EncryptedCatalog down = withKms(DownKms.class)) {
      DownKms.CALLS.set(0);
      EncryptionKeys keys = EncryptionKeys.of(down, T);
      assertThat(DownKms.CALLS.get()).as("one call, and its retries").isEqualTo(5);
      assertThat(keys.kmsCalls()).isEqualTo(1);
      assertThat(keys.kmsProblem()).contains("no answer");
      assertThat(keys.keys()).hasSize(5);
      for (Kind kind : List.of(Kind.MASTER, Kind.KEK)) {
        assertThat(of(keys, kind)).allMatch(key -> !key.kmsAnswers());
        assertThat(of(keys, kind)).allMatch(key -> key.problem().contains("no answer"));
      }

      assertThat(of(keys, Kind.MANIFEST_LIST)).allMatch(key -> key.keyLength() == null);
    }
  }

  @Test
  void aMasterKeyThatIsGone() throws IOException {
    TestLake.createTable(catalog, 1);
    TestKeystore.existing(folder).write(256, "k2");
    try (EncryptedCatalog without = lake.open(Map.of())) {
      EncryptionKeys keys = EncryptionKeys.of(without, T);
      assertThat(keys.kmsProblem()).as("it did answer").isNull();
      assertThat(named(keys, "k1").kmsAnswers()).isFalse();
      assertThat(named(keys, "k1").problem()).contains("k1");
      assertThat(keys.kmsCalls()).isEqualTo(2);
    }
  }

  @Test
  void withoutAKms() throws IOException {
    TestLake.createTable(catalog, 1);
    try (EncryptedCatalog none = new TestLake(backend, folder, Map.of()).open(Map.of())) {
      EncryptionKeys keys = EncryptionKeys.of(none, T);
      assertThat(keys.kmsProblem()).contains("No KMS is configured");
      TableKeys ofTable = new TableKeys("t", TableEncryptionManager::new, none.context()::kms);
      assertThat(ofTable.kms()).as("what a report says").isNull();
      assertThat(keys.kmsCalls()).isZero();
      assertThat(keys.keys()).hasSize(3);
    }
  }

  @Test
  void aMasterKeyWithWhichAnybodyCanWrap() throws IOException {
    TestLake.createTable(catalog, 1);
    try (EncryptedCatalog rsa = withKms(Asymmetric.class)) {
      KeyEntry master = EncryptionKeys.of(rsa, T).keys().get(0);
      assertThat(master.authenticatedWrapping()).isFalse();
      if (backend == Backend.HADOOP) {
        assertThat(master.problem()).contains("its metadata cannot be authenticated");
      }
    }
  }

  @Test
  void metadataThatIsRefusedIsNotListed() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    addKeys(entry("new", kek(table), "k1", Map.of()));
    if (backend == Backend.HADOOP) {
      assertThatThrownBy(() -> EncryptionKeys.of(catalog, T)).isInstanceOf(TamperedException.class);
    } else {
      assertThat(named(EncryptionKeys.of(catalog, T), "new").problem()).contains("when");
    }
  }

  @Test
  void aTableThatAStockClientMadeUnderAKeyId() throws IOException {
    Catalog stock = lake.openStock();
    TestLake.append(TestLake.createTable(stock, "t", Map.of("format-version", "3")), 1);
    ((Closeable) stock).close();
    if (backend == Backend.HADOOP) {
      assertThatThrownBy(() -> EncryptionKeys.of(catalog, T)).isInstanceOf(TamperedException.class);
      return;
    }

    EncryptionKeys keys = EncryptionKeys.of(catalog, T);
    assertThat(keys.keys()).hasSize(1);
    assertThat(keys.keys().get(0).kmsAnswers()).as("a trial, as it has no KEK").isTrue();
    assertThat(keys.keys().get(0).problem()).contains("1 of 1 snapshots are plaintext");
  }

  @Test
  void whatHasNoKeys() {
    catalog.buildTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA).create();
    TestLake.createTable(catalog, 1);
    assertThatThrownBy(() -> EncryptionKeys.of(catalog, TableIdentifier.of(TestLake.DB, "plain")))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.plain", "is not encrypted");
    assertThatThrownBy(() -> EncryptionKeys.of(catalog, TableIdentifier.parse("db.t.files")))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("not one of its metadata tables");
    assertThatThrownBy(() -> EncryptionKeys.of(catalog, TableIdentifier.parse("db.none")))
        .isInstanceOf(NoSuchTableException.class);
  }

  @Test
  void noKeyIsShown() throws IOException {
    TestLake.createTable(catalog, 2);
    String json = Json.of(EncryptionKeys.of(catalog, T).toMap());
    assertThat(json).contains("\"kind\":\"manifest list\"").contains("\"created_at\":\"20");
    for (EncryptedKey key : TestLake.metadata(catalog.loadTable(T)).encryptionKeys()) {
      byte[] blob = new byte[key.encryptedKeyMetadata().remaining()];
      key.encryptedKeyMetadata().duplicate().get(blob);
      assertThat(json).doesNotContain(Base64.getEncoder().encodeToString(blob));
      if ("k1".equals(key.encryptedById())) {
        byte[] bytes = new byte[16];
        catalog.context().kms().unwrapKey(key.encryptedKeyMetadata(), "k1").get(bytes);
        assertThat(json)
            .doesNotContain(Base64.getEncoder().encodeToString(bytes))
            .doesNotContain(HexFormat.of().formatHex(bytes));
      }
    }
  }
}
