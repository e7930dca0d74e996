package io.icebergcrypto.values;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Value keys in the properties of a table, on each catalog. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST", "HIVE"})
class ValueKeyTableTest extends LakeFixture {
  private static final TableIdentifier KEYS = TableIdentifier.of(TestLake.DB, "keys");
  private static final byte[] NONE = new byte[0];
  private static final byte[] VALUE = "123-45-6789".getBytes(UTF_8);

  @Override
  protected Set<Backend> byDay() {
    return Backend.BY_DAY;
  }

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
        .hasMessageContaining("Catalog lake has no value key 'a'")
        .hasMessageContaining("create_value_key");
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
    assertThatThrownBy(() -> catalog.renameTable(KEYS, T))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("Table lake.db.keys: it keeps value keys");
    Table table = catalog.loadTable(KEYS);
    String property = property("b");
    assertThatThrownBy(() -> table.updateProperties().remove(property).commit())
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("would remove value keys: " + property);
    assertThat(keys().entries()).hasSize(3);
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
        .hasMessageContaining("has a value key 'a' already");
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
          .hasMessageContaining("Value key 'b'")
          .hasMessageContaining("'k2'")
          .hasMessageContaining("allowed-key-ids");
      assertThat(values.tryDecrypt("b", value, NONE)).isNull();
    }
  }

  @Test
  void keysThatSomebodyChanged() {
    keys().create("a", "k1");
    keys().create("b", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    Table table = catalog.loadTable(KEYS);
    String a = property("a");
    String before = table.properties().get(a);

    table.updateProperties().set(a, table.properties().get(property("b"))).commit();
    assertThatThrownBy(() -> values().decrypt("a", value, NONE))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("value key 'a'");
    table.updateProperties().set(a, "{}").commit();
    assertThatThrownBy(this::values)
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("Table lake.db.keys: property " + a);
    table.updateProperties().set(a, before.replace("\"k1\"", "\"k2\"")).commit();
    assertThatThrownBy(() -> values().decrypt("a", value, NONE))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("value key 'a', which master key 'k2' wrapped");
    table.updateProperties().set(a, before).commit();
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  @Test
  void theirTablesMasterKeyIsRotatedWithThem() {
    keys().create("a", "k1");
    keys().create("b", "k2");
    byte[] value = values().encrypt("a", VALUE, NONE);
    assertThat(MasterKeyRotation.run(catalog, KEYS, "k2", true).committed()).isFalse();
    assertThat(keys().entries()).extracting(ValueKeyEntry::masterKeyId).containsExactly("k1", "k2");
    MasterKeyRotation.run(catalog, KEYS, "k2", false);
    assertThat(keys().entries()).extracting(ValueKeyEntry::masterKeyId).containsExactly("k2", "k2");
    assertThat(values().decrypt("a", value, NONE)).isEqualTo(VALUE);
  }

  @Test
  void aPlaintextTableIsNotTrusted() {
    catalog.createTable(KEYS, TestLake.SCHEMA);
    assertThatThrownBy(this::values)
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("lake.db.keys")
        .hasMessageContaining("is not encrypted");
    assertThatThrownBy(() -> keys().create("a", "k1")).isInstanceOf(TamperedException.class);
  }

  @Test
  void whatTravelsHasNoKeyAndAsksOnce() throws Exception {
    keys().create("a", "k1");
    byte[] value = values().encrypt("a", VALUE, NONE);
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      ValueEncryption driver = new ValueEncryption(new ValueKeyTable(fresh).load());
      long before = fresh.kms().metrics().unwrapCalls(); // of the table's metadata, where signed
      assertThat(driver.decrypt("a", value, NONE)).isEqualTo(VALUE);
      byte[] unwrapped = unwrapped(fresh);
      byte[] sent = serialized(driver);
      assertThat(new String(sent, ISO_8859_1)).doesNotContain(new String(unwrapped, ISO_8859_1));
      for (int task = 0; task < 5; task++) {
        ValueEncryption arrived =
            (ValueEncryption) new ObjectInputStream(new ByteArrayInputStream(sent)).readObject();
        for (int row = 0; row < 10; row++) {
          assertThat(arrived.decrypt("a", value, NONE)).isEqualTo(VALUE);
        }
      }
      assertThat(fresh.kms().metrics().unwrapCalls()).isEqualTo(before + 1);
    }
  }

  private byte[] unwrapped(EncryptedCatalog of) {
    ValueKeys keys = new ValueKeyTable(of).load();
    return keys.unwrap(keys.versions("a").get(0));
  }

  private static byte[] serialized(Object object) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(object);
    }

    return bytes.toByteArray();
  }
}
