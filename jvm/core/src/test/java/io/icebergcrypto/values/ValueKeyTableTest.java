package io.icebergcrypto.values;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.audit.diagnosis.KeyEntry;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.FailingKms;
import io.icebergcrypto.testing.KeystoreDouble;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Value keys in the properties of a table, on each catalog. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST", "HIVE"})
class ValueKeyTableTest extends LakeFixture {
  private static final TableIdentifier KEYS = TableIdentifier.of(TestLake.DB, "keys");
  private static final byte[] NONE = new byte[0];
  private static final byte[] VALUE = "123-45-6789".getBytes(UTF_8);

  @Override
  protected Map<String, String> properties() {
    return Map.of(ValueKeyProperties.TABLE, "db.keys");
  }

  private ValueKeyTable keys() {
    return new ValueKeyTable(catalog);
  }

  private ValueEncryption values() {
    return new ValueEncryption(keys().load());
  }

  private String metadataFile() {
    return ((HasTableOperations) catalog.loadTable(KEYS))
        .operations()
        .current()
        .metadataFileLocation();
  }

  private String property(String name) {
    return ValueKeyProperties.of(catalog.loadTable(KEYS).properties()).stream()
        .filter(property -> property.startsWith(ValueKeyProperties.PREFIX + name + "."))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void aKeyLivesAsLongAsItsTable() throws Exception {
    assertThatThrownBy(() -> values().encrypt("a", VALUE, NONE))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("Catalog lake has no value key 'a'", "create_value_key");
    keys().create("a", "k1");
    keys().create("b", "k2");
    byte[] old = values().encrypt("a", VALUE, NONE);
    byte[] deterministic = values().encryptDeterministic("a", VALUE, NONE);
    byte[] hash = values().hash("a", VALUE);

    assertThat(keys().rewrap("a", "k2")).hasSize(1);
    assertThat(values().encryptDeterministic("a", VALUE, NONE)).isEqualTo(deterministic);
    keys().addVersion("a", null);
    assertThat(keys().entries())
        .extracting(ValueKeyEntry::name, ValueKeyEntry::masterKeyId)
        .containsExactly(tuple("a", "k2"), tuple("a", "k2"), tuple("b", "k2"));
    ValueEncryption values = values();
    assertThat(values.decrypt("a", old, NONE)).isEqualTo(VALUE);
    assertThat(values.decrypt("a", deterministic, NONE)).isEqualTo(VALUE);
    assertThat(values.encryptDeterministic("a", VALUE, NONE)).isNotEqualTo(deterministic);
    assertThat(values.hash("a", VALUE)).isEqualTo(hash);
    assertThat(values.tryDecrypt("b", old, NONE)).isNull();
    assertThatThrownBy(() -> values.decrypt("b", old, NONE))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("value key 'b' of catalog lake")
        .hasMessageNotContaining("123-45");

    assertThatThrownBy(() -> catalog.dropTable(KEYS, false))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("Table lake.db.keys: it keeps value keys");
    assertThatThrownBy(() -> catalog.dropTable(KEYS)).isInstanceOf(NotSupportedException.class);
    assertThatThrownBy(() -> catalog.context().purgeWithoutKey(KEYS, true))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("Table lake.db.keys: it keeps value keys");
    assertThatThrownBy(() -> catalog.renameTable(KEYS, T))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("Table lake.db.keys: it keeps value keys");
    assertThatThrownBy(() -> catalog.context().checkDropOfTables(KEYS.namespace()))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("Table lake.db.keys: it keeps value keys");
    catalog.context().checkDropOfTables(Namespace.of("other"));
    Table table = catalog.loadTable(KEYS);
    String property = property("b");
    assertThatThrownBy(() -> table.updateProperties().remove(property).commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("would remove value keys: " + property);
    assertThat(keys().entries()).hasSize(3);
  }

  /** A metastore ignores it. */
  @Test
  void theCaseOfItsNameDoesNotMatter() {
    keys().create("a", "k1");
    TableIdentifier capitals = TableIdentifier.of("DB", "KEYS");
    if (catalog.tableExists(capitals)) {
      assertThatThrownBy(() -> catalog.dropTable(capitals, false))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContaining("it keeps value keys");
    } else {
      assertThat(catalog.dropTable(capitals, false)).isFalse();
    }

    assertThat(keys().entries()).hasSize(1);
  }

  /** Else it would bring back a version that was dropped. */
  @Test
  void aReplacementThatBeganBeforeIsRefused() {
    keys().create("a", "k1");
    String first = keys().entries().get(0).version();
    keys().addVersion("a", null);
    Table table = catalog.loadTable(KEYS);
    Transaction replace = catalog.buildTable(KEYS, table.schema()).replaceTransaction();
    keys().drop("a", first, true);
    if (backend == Backend.REST) {
      replace.commitTransaction(); // a server keeps the newer properties
    } else {
      assertThatThrownBy(replace::commitTransaction)
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContaining("Table lake.db.keys: property " + ValueKeyProperties.PREFIX + "a.")
          .hasMessageContaining("was changed after this statement began");
    }

    assertThat(keys().entries()).hasSize(1);
  }

  @Test
  void keysThatAreRefused() throws IOException {
    for (String name : List.of("", "a b", "../a", "-a", "a".repeat(101))) {
      assertThatThrownBy(() -> keys().create(name, "k1"))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("the name of a value key");
    }
    assertThatThrownBy(() -> keys().create("a", "nobody"))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("'nobody'");
    assertThat(catalog.tableExists(KEYS)).isFalse();

    keys().create("a", "k1");
    assertThatThrownBy(() -> keys().create("a", "k2"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("already has a value key 'a'");
    keys().create("b", "k2");
    byte[] value = values().encrypt("b", VALUE, NONE);
    try (EncryptedCatalog onlyK1 = lake.open(Map.of("encryption.allowed-key-ids", "k1"))) {
      ValueKeyTable limited = new ValueKeyTable(onlyK1);
      assertThatThrownBy(() -> limited.create("c", "k2"))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining("lake.db.keys");
      ValueEncryption values = new ValueEncryption(limited.load());
      values.encrypt("a", VALUE, NONE);
      assertThatThrownBy(() -> values.decrypt("b", value, NONE))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContainingAll("Value key 'b'", "'k2'", "allowed-key-ids");
      assertThat(values.tryDecrypt("b", value, NONE)).isNull();
    }
  }

  @Test
  void keysThatWereChanged() throws IOException {
    keys().create("a", "k1");
    keys().create("b", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    Table table = catalog.loadTable(KEYS);
    String a = property("a");
    String before = table.properties().get(a);

    String b = table.properties().get(property("b"));
    assertThatThrownBy(() -> table.updateProperties().set(a, b).commit())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("Table lake.db.keys: property " + a + " is a value key")
        .hasMessageContaining("rotate_value_key");
    assertThatThrownBy(
            () -> catalog.buildTable(KEYS, table.schema()).withProperty(a, b).replaceTransaction())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("Table lake.db.keys: property " + a + " is a value key");
    set(a, b); // another client
    assertThatThrownBy(() -> values().encrypt("a", VALUE, NONE))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContainingAll("value key 'a'", "does not fit its check value, twice");
    set(a, before.replace("\"k1\"", "\"k2\""));
    assertThatThrownBy(() -> values().decrypt("a", value, NONE))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("value key 'a', which master key 'k2' wrapped");
    set(a, before);
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
    table.refresh();
    table.updateProperties().set(a, before).commit();
    String version = keys().addVersion("a", null).version();
    table.refresh();
    assertThatThrownBy(
            () -> table.newTransaction().updateProperties().set(a + version, b).set(a, b).commit())
        .isInstanceOf(InvalidConfigurationException.class);
    keys().drop("a", a.substring(a.lastIndexOf('.') + 1), true);
    assertThat(keys().entries()).hasSize(2);
    table.refresh();
    table.updateProperties().set(a, before).commit(); // a dropped one comes back
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  private void set(String property, String value) {
    TableOperations ops = ((HasTableOperations) catalog.loadTable(KEYS)).operations();
    TableMetadata base = ops.current();
    ops.commit(base, TableMetadata.buildFrom(base).setProperties(Map.of(property, value)).build());
  }

  /** A key that is wrong in the cache, or once: no value is encrypted with it, nor refused. */
  @Test
  void aKeyThatTheKmsGivesWrongOnceIsAskedForAgain() throws IOException {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    for (int length : List.of(16, 32)) {
      try (EncryptedCatalog wrong = openSlow()) {
        ValueEncryption values = new ValueEncryption(new ValueKeyTable(wrong).load());
        Slow.WRONG.set(new byte[length]);
        byte[] own = values.encrypt("a", VALUE, NONE);
        assertThat(Slow.WRONG.get()).isNull();
        assertThat(values.decrypt("a", value, NONE)).isEqualTo(VALUE);
        assertThat(values().decrypt("a", own, NONE)).isEqualTo(VALUE);
        assertThat(new ValueEncryption(new ValueKeyTable(wrong).load()).decrypt("a", own, NONE))
            .as("with the key that is in the cache now")
            .isEqualTo(VALUE);
      }
    }
  }

  @Test
  void whatIsNoKeyIsRefusedAndTold() throws IOException {
    keys().create("a", "k1");
    String a = property("a");
    String junk = ValueKeyProperties.PREFIX + "junk";
    for (String name : List.of(a, junk)) {
      assertThatThrownBy(() -> catalog.loadTable(KEYS).updateProperties().set(name, "{}").commit())
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("Table lake.db.keys: property " + name, "drop_value_key");
    }

    if (backend == Backend.REST) { // no signature
      Catalog stock = lake.openStock();
      stock.loadTable(KEYS).updateProperties().set(junk, "{}").commit();
      ((Closeable) stock).close();
      assertThatThrownBy(this::values)
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("Table lake.db.keys: property " + junk);
      assertThat(EncryptionKeys.of(catalog, KEYS).keys())
          .filteredOn(key -> key.problem() != null)
          .extracting(KeyEntry::kind, KeyEntry::keyId)
          .containsExactly(tuple(KeyEntry.Kind.VALUE, "junk"));
      catalog.loadTable(KEYS).updateProperties().remove(junk).commit();
      assertThat(keys().entries()).hasSize(1);
    }
  }

  @Test
  void theirTablesMasterKeyIsRotatedWithThem() throws IOException {
    TestKeystore.existing(folder).add("k3");
    keys().create("a", "k1");
    keys().create("b", "k2");
    keys().create("c", "k3");
    byte[] value = values().encrypt("a", VALUE, NONE);
    assertThat(MasterKeyRotation.run(catalog, KEYS, "k2", true).committed()).isFalse();
    assertThat(masterKeys()).containsExactly("k1", "k2", "k3");
    MasterKeyRotation done = MasterKeyRotation.run(catalog, KEYS, "k2", false);
    assertThat(masterKeys()).as("who may use k3 decides").containsExactly("k2", "k2", "k3");
    assertThat(done.valueKeys()).as("a, and b by the newest version").isEqualTo(2);
    assertThat(done.valueKeysLeft()).isEqualTo("c (k3)");
    assertThat(done.message())
        .contains("'k2' instead of 'k1', together with 2 value keys", "stay as they are: c (k3)");
    assertThat(done.kmsCalls()).as("three for a KEK and two value keys each").isEqualTo(9);
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  private List<String> masterKeys() {
    return keys().entries().stream().map(ValueKeyEntry::masterKeyId).toList();
  }

  @Test
  void reportsListThemAndANewVersionWrapsAll() throws IOException {
    keys().create("a", "k1");
    keys().create("b", "k2");
    byte[] value = values().encrypt("b", VALUE, NONE);
    EncryptionKeys found = EncryptionKeys.of(catalog, KEYS);
    assertThat(found.kmsCalls()).as("a KEK, two value keys").isEqualTo(3);
    assertThat(found.keys())
        .filteredOn(key -> key.kind() == KeyEntry.Kind.VALUE)
        .extracting(
            KeyEntry::encryptedBy, KeyEntry::keyLength, KeyEntry::kmsAnswers, KeyEntry::problem)
        .containsExactly(tuple("k1", 32, true, null), tuple("k2", 32, true, null));
    assertThat(MasterKeyUse.of(catalog, KEYS).valueKeys())
        .extracting(MasterKeyUse.WrappedBy::masterKeyId, MasterKeyUse.WrappedBy::version)
        .containsExactly(tuple("k1", 1), tuple("k2", 1));

    TestKeystore.existing(folder).add("k2.v2");
    MasterKeyRotation done = MasterKeyRotation.run(catalog, KEYS, null, false);
    assertThat(done.valueKeys()).isEqualTo(2);
    assertThat(done.valueKeysLeft()).isNull();
    assertThat(MasterKeyUse.of(catalog, KEYS).valueKeys())
        .extracting(MasterKeyUse.WrappedBy::version)
        .containsExactly(1, 2);
    assertThat(values().decrypt("b", value, NONE)).isEqualTo(VALUE);

    TestKeystore.existing(folder).delete("k2");
    TestKeystore.existing(folder).delete("k2.v2");
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      assertThat(EncryptionKeys.of(fresh, KEYS).keys())
          .filteredOn(key -> key.problem() != null)
          .extracting(KeyEntry::kind, key -> key.keyId().replaceFirst("\\..*", ""))
          .containsExactly(tuple(KeyEntry.Kind.MASTER, "k2"), tuple(KeyEntry.Kind.VALUE, "b"));
      assertThatThrownBy(() -> MasterKeyRotation.run(fresh, KEYS, null, false))
          .isInstanceOf(KeyNotFoundException.class)
          .hasMessageContainingAll("lake.db.keys", "value key 'b', which master key 'k2' wrapped")
          .hasMessageContaining("new_key_id => 'k1'");
      assertThat(MasterKeyRotation.run(fresh, KEYS, "k1", false).valueKeysLeft())
          .isEqualTo("b (k2)");
    }
    try (EncryptedCatalog onlyK1 = lake.open(Map.of("encryption.allowed-key-ids", "k1"))) {
      assertThat(EncryptionKeys.of(onlyK1, KEYS).keys())
          .filteredOn(key -> key.problem() != null)
          .extracting(KeyEntry::kmsAnswers, KeyEntry::problem)
          .containsExactly(
              tuple(
                  null, "the catalog does not allow its master key (encryption.allowed-key-ids)"));
      assertThatThrownBy(() -> MasterKeyRotation.run(onlyK1, KEYS, null, false))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining("value key 'b'");
    }
  }

  @Test
  void aVersionIsDropped() {
    keys().create("a", "k1");
    byte[] old = values().encryptDeterministic("a", VALUE, NONE);
    assertThatThrownBy(() -> keys().drop("a", version(0), true))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("value key 'a' of catalog lake is its newest")
        .hasMessageContaining("new_version => true");
    ValueEncryption analyzed = values();
    keys().addVersion("a", null);
    byte[] value = values().encrypt("a", VALUE, NONE);
    byte[] hash = values().hash("a", VALUE);
    assertThat(hash).isNotNull();
    assertThatThrownBy(() -> analyzed.tryDecrypt("a", value, NONE))
        .as("a query that was analyzed before its version was there")
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("Run the query again")
        .hasMessageNotContaining("NULL");
    assertThat(analyzed.tryDecrypt("a", old, NONE)).isEqualTo(VALUE);

    String first = version(0);
    assertThatThrownBy(() -> keys().drop("a", first, false))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("nothing was dropped", "hash_value of this key would fail")
        .hasMessageContainingAll("confirm => true", "'" + first.toUpperCase(Locale.ROOT) + "'");
    assertThatThrownBy(() -> keys().drop("a", "12", true))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("no version '12'", first);
    assertThatThrownBy(() -> keys().drop("b", first, true))
        .isInstanceOf(KeyNotFoundException.class);
    assertThat(values().decrypt("a", old, NONE)).isEqualTo(VALUE);

    ValueEncryption before = values();
    String older = metadataFile();
    assertThat(keys().drop("a", first.toUpperCase(Locale.ROOT), true)).hasSize(1);
    assertThat(keys().entries()).hasSize(1);
    assertThat(before.decrypt("a", old, NONE)).as("a query that began").isEqualTo(VALUE);
    ValueEncryption after = values();
    assertThatThrownBy(() -> catalog.registerTable(KEYS, older, true))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("would bring dropped value keys back: encryption.value-key.a.");
    assertThatThrownBy(() -> after.decrypt("a", old, NONE))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContainingAll("version " + first, "was dropped");
    assertThat(after.tryDecrypt("a", old, NONE)).isNull();
    assertThat(after.tryDecrypt("a", value, NONE)).isEqualTo(VALUE);
    assertThatThrownBy(() -> after.hash("a", VALUE))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("first version of value key 'a'");

    assertThat(keys().rewrap("a", "k2")).hasSize(1);
    assertThat(MasterKeyRotation.run(catalog, KEYS, "k2", false).valueKeys()).isEqualTo(1);
    assertThat(EncryptionKeys.of(catalog, KEYS).keys()).allMatch(key -> key.problem() == null);
    assertThatThrownBy(() -> catalog.dropTable(KEYS, false))
        .isInstanceOf(NotSupportedException.class);
  }

  /** What is rewrapped is wrong for good, while the key's check value says what it should be. */
  @Test
  void aKeyThatTheKmsGivesWrongIsNotRewrapped() throws IOException {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    WrappedValueKey key = keys().load().versions("a").get(0);
    try (EncryptedCatalog wrong = openSlow()) {
      Slow.CONFUSED.set(key.bytes());
      ValueEncryption values = new ValueEncryption(new ValueKeyTable(wrong).load());
      assertThatThrownBy(() -> values.tryDecrypt("a", value, NONE))
          .as("NULL would be taken for a value that was changed")
          .isInstanceOf(BadWrappedKeyException.class)
          .hasMessageContaining("value key 'a'");
      assertThatThrownBy(() -> MasterKeyRotation.run(wrong, KEYS, "k2", false))
          .isInstanceOf(BadWrappedKeyException.class)
          .hasMessageContaining("Table lake.db.keys: value key 'a', which master key 'k1' wrapped")
          .hasMessageContainingAll("does not fit its check value, twice", "Nothing was changed.");
      assertThat(EncryptionKeys.of(wrong, KEYS).keys())
          .filteredOn(found -> found.problem() != null)
          .extracting(KeyEntry::kind, KeyEntry::keyId, KeyEntry::problem)
          .containsExactly(
              tuple(
                  KeyEntry.Kind.VALUE,
                  "a." + key.version(),
                  "the KMS gives a key that does not fit its check value, twice"));
    } finally {
      Slow.CONFUSED.set(null);
    }

    assertThat(masterKeys()).containsExactly("k1");
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  /** Nothing else shows whether the KMS gives the right key. */
  @Test
  void aKeyWithoutItsCheckValueIsRefused() throws IOException {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    String a = property("a");
    String made = catalog.loadTable(KEYS).properties().get(a);
    String without = made.replace("check-value", "check");
    assertThatThrownBy(() -> WrappedValueKey.parse(a, without))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining(a + " is not a value key as create_value_key writes it");
    assertThatThrownBy(() -> set(a, without))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(a);
    set(a, made.replace("\"v1.", "\"v2."));
    assertThatThrownBy(() -> values().decrypt("a", value, NONE))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("does not fit its check value, twice");
    set(a, made);
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
    assertThat(MasterKeyRotation.run(catalog, KEYS, "k1", false).kmsCalls())
        .as("three for a KEK, and for the value key")
        .isEqualTo(6);
  }

  /** A keystore during whose next call something else happens, or that answers wrong. */
  public static final class Slow extends KeystoreDouble {
    private static final long serialVersionUID = 1L;
    private static final AtomicReference<Runnable> MEANWHILE = new AtomicReference<>();
    private static final AtomicReference<byte[]> WRONG = new AtomicReference<>();
    private static final AtomicReference<ByteBuffer> CONFUSED = new AtomicReference<>();

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      Runnable meanwhile = MEANWHILE.getAndSet(null);
      if (meanwhile != null) {
        meanwhile.run();
      }

      return super.wrapKey(key, wrappingKeyId);
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      if (wrappedKey.equals(CONFUSED.get())) {
        return ByteBuffer.allocate(WrappedValueKey.LENGTH);
      }

      byte[] wrong = WRONG.getAndSet(null);
      return wrong == null ? super.unwrapKey(wrappedKey, wrappingKeyId) : ByteBuffer.wrap(wrong);
    }
  }

  private EncryptedCatalog openSlow() throws IOException {
    Map<String, String> own = new HashMap<>(properties());
    own.putAll(TestKeystore.existing(folder).properties());
    own.remove("encryption.kms-type");
    own.put("encryption.kms-impl", Slow.class.getName());
    return new TestLake(backend, folder, own).open(Map.of());
  }

  /** A caller that waits for the KMS does not bring back what another client dropped. */
  @Test
  void aVersionThatIsDroppedMeanwhileStaysDropped() throws IOException {
    keys().create("a", "k1");
    keys().addVersion("a", null);
    byte[] value = values().encrypt("a", VALUE, NONE);
    String first = version(0);
    try (EncryptedCatalog slow = openSlow()) {
      Slow.MEANWHILE.set(() -> keys().drop("a", first, true));
      assertThat(new ValueKeyTable(slow).rewrap("a", "k2"))
          .extracting(ValueKeyEntry::masterKeyId)
          .containsExactly("k2");
    }

    assertThat(keys().entries())
        .extracting(ValueKeyEntry::version)
        .hasSize(1)
        .doesNotContain(first);
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  /** Nor does it wrap by a master key again that another client just replaced, to disable it. */
  @ParameterizedTest
  @CsvSource({",k2", "k2,k2", "k1,"})
  void aVersionThatIsRewrappedMeanwhileStaysSo(String newMasterKeyId, String expected)
      throws IOException {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    try (EncryptedCatalog slow = openSlow()) {
      Slow.MEANWHILE.set(() -> keys().rewrap("a", "k2"));
      ValueKeyTable table = new ValueKeyTable(slow);
      if (expected == null) {
        assertThatThrownBy(() -> table.rewrap("a", newMasterKeyId))
            .isInstanceOf(NotSupportedException.class)
            .hasMessageContaining("was wrapped by master key 'k2' meanwhile");
      } else {
        assertThat(table.rewrap("a", newMasterKeyId))
            .extracting(ValueKeyEntry::masterKeyId)
            .containsExactly(expected);
      }
    }

    assertThat(keys().entries()).extracting(ValueKeyEntry::masterKeyId).containsExactly("k2");
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  /** Nor does a rotation of the master key, which a REST server does not refuse then. */
  @Test
  @Tag("REST")
  void aVersionThatIsDroppedDuringARotationStaysDropped() throws IOException {
    keys().create("a", "k1");
    keys().addVersion("a", null);
    String first = version(0);
    try (EncryptedCatalog slow = openSlow()) {
      Slow.MEANWHILE.set(() -> keys().drop("a", first, true));
      MasterKeyRotation.run(slow, KEYS, "k2", false);
    }

    assertThat(keys().entries())
        .satisfiesExactly(
            entry -> {
              assertThat(entry.version()).isNotEqualTo(first);
              assertThat(entry.masterKeyId()).isEqualTo("k2");
            });
  }

  /** While one waits for the KMS, the other one is done: a second key would hash differently. */
  @Test
  void twoCallersDoNotMakeOneKey() throws IOException {
    keys().create("other", "k1");
    try (EncryptedCatalog slow = openSlow()) {
      Slow.MEANWHILE.set(() -> keys().create("a", "k2"));
      ValueKeyTable table = new ValueKeyTable(slow);
      assertThatThrownBy(() -> table.create("a", "k1"))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("Catalog lake already has a value key 'a'");
    }

    assertThat(keys().load().versions("a"))
        .extracting(WrappedValueKey::masterKeyId)
        .containsExactly("k2");
  }

  /** hash_value uses the first version, and encrypt_value the last. */
  @Test
  void aVersionIsNewerThanThoseThatWereAddedMeanwhile() throws IOException {
    keys().create("a", "k1");
    AtomicReference<String> meanwhile = new AtomicReference<>();
    try (EncryptedCatalog slow = openSlow()) {
      Slow.MEANWHILE.set(() -> meanwhile.set(keys().addVersion("a", null).version()));
      String last = new ValueKeyTable(slow).addVersion("a", null).version();
      assertThat(keys().load().versions("a"))
          .extracting(WrappedValueKey::version)
          .hasSize(3)
          .endsWith(meanwhile.get(), last);
    }
  }

  private String version(int index) {
    return keys().entries().get(index).version();
  }

  @Test
  void whatOneVersionIsDeniedAnotherIsNot() throws IOException {
    keys().create("first", "k1"); // the table's master key
    keys().create("a", "k2");
    byte[] denied = values().encrypt("a", VALUE, NONE);
    keys().addVersion("a", "k1");
    byte[] allowed = values().encrypt("a", VALUE, NONE);
    try (EncryptedCatalog onlyK1 = lake.open(Map.of("encryption.allowed-key-ids", "k1"))) {
      ValueEncryption values = new ValueEncryption(new ValueKeyTable(onlyK1).load());
      assertThat(values.tryDecrypt("a", denied, NONE)).isNull();
      assertThat(values.tryDecrypt("a", allowed, NONE)).isEqualTo(VALUE);
      assertThat(values.tryDecrypt("a", denied, NONE)).isNull();
      String first = keys().entries().get(0).version();
      assertThatThrownBy(() -> new ValueKeyTable(onlyK1).drop("a", first, true))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining("'k2'");
    }
  }

  /** NULL in the place of a value would be committed by whoever copies the rows. */
  @Test
  void aLoginOrANetworkThatIsRefusedIsNoAnswer() throws IOException {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    try (EncryptedCatalog other = openWith(LoginFails.class)) {
      ValueEncryption values = new ValueEncryption(new ValueKeyTable(other).load());
      assertThatThrownBy(() -> values.tryDecrypt("a", value, NONE))
          .isInstanceOf(LoginFailedException.class);
    }

    try (EncryptedCatalog other = openWith(NotFromHere.class)) {
      ValueEncryption values = new ValueEncryption(new ValueKeyTable(other).load());
      assertThatThrownBy(() -> values.tryDecrypt("a", value, NONE))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining("not from this network");
    }
  }

  /**
   * Rotation disables versions to see what still needs them; who shreds values destroys the key.
   */
  @Test
  void onlyADestroyedKeyGivesNull() throws IOException {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    for (boolean destroyed : new boolean[] {true, false}) {
      Disabled.DESTROYED.set(destroyed);
      try (EncryptedCatalog other = openWith(Disabled.class)) {
        ValueEncryption values = new ValueEncryption(new ValueKeyTable(other).load());
        if (destroyed) {
          assertThat(values.tryDecrypt("a", value, NONE)).isNull();
        } else {
          assertThatThrownBy(() -> values.tryDecrypt("a", value, NONE))
              .isInstanceOf(KeyDisabledException.class);
        }
      }
    }
  }

  /** A KMS whose key is disabled, or destroyed. */
  public static final class Disabled extends FailingKms {
    private static final long serialVersionUID = 1L;
    private static final AtomicBoolean DESTROYED = new AtomicBoolean();

    @Override
    protected RuntimeException failure() {
      return new KeyDisabledException("disabled", "Enable it.").destroyedIf(DESTROYED.get());
    }
  }

  private EncryptedCatalog openWith(Class<? extends FailingKms> kms) throws IOException {
    Map<String, String> properties =
        Map.of(
            "encryption.kms-impl",
            kms.getName(),
            "encryption.metadata-authentication",
            "off",
            ValueKeyProperties.TABLE,
            "db.keys");
    return new TestLake(backend, folder, properties).open(Map.of());
  }

  /** A KMS that refuses this network. */
  public static final class NotFromHere extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new AccessDeniedException("not from this network", "Allow it.").ofKeyIf(false);
    }
  }

  /** A KMS that refuses the login. */
  public static final class LoginFails extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new LoginFailedException("the token has expired", "Log in again.");
    }
  }

  @Test
  void aPlaintextTableIsNotTrusted() {
    catalog.createTable(KEYS, TestLake.SCHEMA);
    assertThatThrownBy(this::values)
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.keys", "is not encrypted");
    assertThatThrownBy(() -> keys().create("a", "k1")).isInstanceOf(TamperedException.class);
  }

  @Test
  void whatTravelsHasNoKeyAndAsksOnce() throws Exception {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      ValueEncryption driver = new ValueEncryption(new ValueKeyTable(fresh).load());
      long before =
          fresh.context().kms().metrics().unwrapCalls(); // of the table's metadata, where signed
      assertThat(driver.decrypt("a", value, NONE)).isEqualTo(VALUE);
      byte[] unwrapped = unwrapped(fresh);
      byte[] sent = SerializationUtil.serializeToBytes(driver);
      assertThat(new String(sent, ISO_8859_1)).doesNotContain(new String(unwrapped, ISO_8859_1));
      for (int task = 0; task < 5; task++) {
        ValueEncryption arrived = SerializationUtil.deserializeFromBytes(sent);
        for (int row = 0; row < 10; row++) {
          assertThat(arrived.decrypt("a", value, NONE)).isEqualTo(VALUE);
        }
      }
      assertThat(fresh.context().kms().metrics().unwrapCalls()).isEqualTo(before + 1);
    }
  }

  private byte[] unwrapped(EncryptedCatalog of) {
    ValueKeys keys = new ValueKeyTable(of).load();
    return keys.unwrap(keys.versions("a").get(0));
  }
}
