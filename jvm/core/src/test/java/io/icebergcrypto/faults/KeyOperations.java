package io.icebergcrypto.faults;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.faults.Operation.Trait;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.KeyPruning;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.lifecycle.encrypt.MetadataInMemory;
import io.icebergcrypto.lifecycle.encrypt.PlaintextForm;
import io.icebergcrypto.lifecycle.repair.TableRepair;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.LengthlessClient;
import io.icebergcrypto.testing.TestLake;
import io.icebergcrypto.values.ValueEncryption;
import io.icebergcrypto.values.ValueKeyEntry;
import io.icebergcrypto.values.ValueKeyTable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;

/** Operations on a table's keys, and on value keys. */
final class KeyOperations {
  private static final byte[] NONE = new byte[0];
  private static final byte[] VALUE = "123-45-6789".getBytes(StandardCharsets.UTF_8);

  private static final Map<String, String> KEEPER = Map.of(ValueKeyProperties.TABLE, "{table}");

  private static final String UNNEEDED = "unneeded";

  private KeyOperations() {}

  static Operation rotateMasterKey() {
    return Operation.of(
            "ROTATE_MASTER_KEY",
            (catalog, name) -> MasterKeyRotation.run(catalog, name, "k2", false),
            table ->
                "k2".equals(table.properties().get("encryption.key-id"))
                    && Kek.all(TestLake.metadata(table)).stream()
                        .allMatch(kek -> kek.encryptedById().equals("k2")))
        .that(Trait.REPEATS, Trait.LASTS);
  }

  static Operation rotateKek() {
    return Operation.of(
            "ROTATE_KEK",
            (catalog, name) -> KekRotation.run(catalog, name, true, false),
            table -> keks(table) > 1)
        .that(Trait.REPEATS, Trait.LASTS);
  }

  private static int keks(Table table) {
    return Kek.all(TestLake.metadata(table)).size();
  }

  static List<Operation> all() {
    return List.of(
        rotateKek(),
        Operation.of(
            "NEW_KEK",
            (catalog, name) -> KekRotation.run(catalog, name, false, false),
            table -> keks(table) == 2),
        rotateMasterKey(),
        Operation.of(
                "REWRAP",
                (catalog, name) -> MasterKeyRotation.run(catalog, name, null, false),
                (Operation.Done) null)
            .that(Trait.REPEATS),
        Operation.of(
                "PRUNE",
                (catalog, name) -> KeyPruning.run(catalog, name, false),
                table ->
                    TestLake.metadata(table).encryptionKeys().stream()
                        .noneMatch(key -> key.keyId().equals(UNNEEDED)))
            .with(Map.of("encryption.metadata-authentication", "off"))
            .preparedBy(KeyOperations::unneeded)
            .that(Trait.REPEATS),
        Operation.of(
                "REPAIR",
                rows -> Operation.BEFORE,
                (catalog, name) ->
                    assertThat(TableRepair.run(catalog, name, true).ok()).as("repaired").isTrue())
            .with(
                Map.of(
                    "encryption.metadata-authentication",
                    "off",
                    "encryption.allowed-key-ids",
                    "k1"))
            .preparedBy(KeyOperations::withoutKeyId)
            .that(Trait.STARTS_BROKEN, Trait.MAY_BE_DENIED)
            .beside(nothing()),
        Operation.of(
                "REPAIR_LENGTHS",
                rows -> List.of(1L, 2L, 3L, 4L),
                (catalog, name) ->
                    assertThat(TableRepair.run(catalog, name, true).ok()).as("repaired").isTrue())
            .with(Map.of("encryption.metadata-authentication", "off"))
            .preparedBy(KeyOperations::withoutLengths)
            .that(Trait.STARTS_BROKEN, Trait.MAY_BE_DENIED)
            .beside(nothing()),
        Operation.of(
                "ENCRYPT",
                KeyOperations::encrypt,
                table -> "k1".equals(table.properties().get("encryption.key-id")))
            .preparedBy(KeyOperations::plaintext)
            .that(Trait.FORGETS, Trait.LEAVES_PLAINTEXT),
        Operation.of(
                "DECRYPT",
                KeyOperations::decrypt,
                table -> !table.properties().containsKey("encryption.key-id"))
            .that(Trait.FORGETS, Trait.LEAVES_PLAINTEXT),
        onValueKey(
            Operation.of(
                "CREATE_VALUE_KEY",
                (catalog, name) -> new ValueKeyTable(catalog).create("b", "k2"),
                (catalog, name) -> works(catalog, "b"))),
        Operation.of(
                "FIRST_VALUE_KEY",
                rows -> List.of(),
                (catalog, name) -> new ValueKeyTable(catalog).create("b", "k1"))
            .doneWhen((catalog, name) -> works(catalog, "b"))
            .that(Trait.IN_STEPS)
            .with(KEEPER)
            .preparedBy((catalog, name, lake) -> (fresh, same) -> {})
            .beside(anotherValueKey()),
        onValueKey(
            Operation.of(
                "ADD_VALUE_KEY_VERSION",
                (catalog, name) -> new ValueKeyTable(catalog).addVersion("a", "k2"),
                (catalog, name) -> works(catalog, "a") && versions(catalog, name).size() == 2)),
        onValueKey(
                Operation.of(
                    "REWRAP_VALUE_KEY",
                    (catalog, name) -> new ValueKeyTable(catalog).rewrap("a", "k2"),
                    (catalog, name) -> versions(catalog, name).get(0).masterKeyId().equals("k2")))
            .that(Trait.REPEATS),
        Operation.of(
                "DROP_VALUE_KEY_VERSION",
                (catalog, name) -> {
                  ValueKeyTable keys = new ValueKeyTable(catalog);
                  List<ValueKeyEntry> versions = keys.entries();
                  keys.drop("c", versions.get(versions.size() - 2).version(), true);
                },
                (catalog, name) -> works(catalog, "c") && versions(catalog, name).size() == 2)
            .with(KEEPER)
            .preparedBy(
                (catalog, name, lake) -> {
                  Operation.Step check = valueKey(catalog, name, lake);
                  new ValueKeyTable(catalog).create("c", "k1");
                  new ValueKeyTable(catalog).addVersion("c", "k1");
                  return check;
                })
            .beside(nothing()),
        onValueKey(
                Operation.of(
                    "ROTATE_VALUE_KEYS",
                    (catalog, name) -> MasterKeyRotation.run(catalog, name, "k2", false),
                    (catalog, name) -> versions(catalog, name).get(0).masterKeyId().equals("k2")))
            .that(Trait.REPEATS),
        Operation.of(
                "PURGE_WITHOUT_KEY",
                rows -> rows,
                (catalog, name) -> {
                  try {
                    catalog.context().purgeWithoutKey(name, true);
                  } catch (InvalidConfigurationException e) {
                    assertThat(e).hasMessageContaining("its key is available");
                  }
                })
            .that(Trait.REFUSED));
  }

  private static Operation nothing() {
    return Operation.of("NOTHING", rows -> rows, (catalog, name) -> {});
  }

  /** A key that nothing needs, as a client leaves it that removes none. */
  private static void unneeded(EncryptedCatalog catalog, TableIdentifier name) {
    TableOperations ops = catalog.context().unchecked(name).operations();
    TableMetadata base = ops.current();
    EncryptedKey used =
        base.encryptionKeys().stream()
            .filter(key -> !Kek.all(base).contains(key))
            .findFirst()
            .orElseThrow();
    ops.commit(
        base,
        TableMetadata.buildFrom(base)
            .addEncryptionKey(
                new BaseEncryptedKey(
                    UNNEEDED, used.encryptedKeyMetadata(), used.encryptedById(), Map.of()))
            .build());
  }

  /** A table whose key id a client without encryption took away. */
  private static void withoutKeyId(EncryptedCatalog catalog, TableIdentifier name) {
    TableOperations ops = catalog.context().unchecked(name).operations();
    ops.commit(
        ops.current(),
        TableMetadata.buildFrom(ops.current())
            .removeProperties(Set.of("encryption.key-id"))
            .build());
  }

  /** A table to which a client has written that records no lengths. */
  private static Operation.Step withoutLengths(
      EncryptedCatalog catalog, TableIdentifier name, TestLake lake) throws IOException {
    Operation.rows(catalog, name);
    new LengthlessClient(lake.openStock().loadTable(name), catalog.context().kms()).append(4);
    return (fresh, same) -> {};
  }

  private static Operation.Step plaintext(
      EncryptedCatalog catalog, TableIdentifier name, TestLake lake) {
    TestLake.append(catalog.buildTable(name, TestLake.SCHEMA).create(), 1, 2, 3);
    return (fresh, same) -> {};
  }

  /** As encrypt_table does, with rows that it knows. */
  private static void encrypt(EncryptedCatalog catalog, TableIdentifier name) {
    TableMetadata base = TestLake.metadata(catalog.loadTable(name));
    change(catalog, name, base, TestLake.encrypted(catalog, name, base), false);
  }

  private static void decrypt(EncryptedCatalog catalog, TableIdentifier name) {
    TableMetadata base = TestLake.metadata(catalog.loadTable(name));
    change(catalog, name, base, PlaintextForm.of(base), true);
  }

  private static void change(
      EncryptedCatalog catalog,
      TableIdentifier name,
      TableMetadata base,
      TableMetadata form,
      boolean decrypts) {
    BaseTable next =
        catalog
            .context()
            .uncommitted(
                new MetadataInMemory(catalog.context().unchecked(name).operations(), form),
                catalog.context().fullName(name));
    long[] rows = TestLake.rows(catalog.loadTable(name)).stream().mapToLong(id -> id).toArray();
    TestLake.append(next, rows);
    if (decrypts) {
      KeyIdChange.decrypt(catalog, name, base, next.operations().current());
    } else {
      KeyIdChange.commit(catalog, name, base, next.operations().current());
    }
  }

  /** An operation on a table that has a value key, beside another one. */
  private static Operation onValueKey(Operation operation) {
    return operation.with(KEEPER).preparedBy(KeyOperations::valueKey).beside(anotherValueKey());
  }

  private static Operation anotherValueKey() {
    return Operation.of(
        "VALUE_KEY_Z",
        rows -> List.of(),
        (catalog, name) -> new ValueKeyTable(catalog).create("z", "k1"));
  }

  /** A table of value keys with one, and a value that this encrypts. */
  private static Operation.Step valueKey(
      EncryptedCatalog catalog, TableIdentifier name, TestLake lake) {
    new ValueKeyTable(catalog).create("a", "k1");
    byte[] encrypted = values(catalog).encrypt("a", VALUE, NONE);
    return (fresh, same) -> {
      assertThat(values(fresh).decrypt("a", encrypted, NONE)).isEqualTo(VALUE);
      assertThat(EncryptionKeys.of(fresh, name).keys()).allMatch(key -> key.problem() == null);
    };
  }

  private static ValueEncryption values(EncryptedCatalog catalog) {
    return new ValueEncryption(new ValueKeyTable(catalog).load());
  }

  private static List<WrappedValueKey> versions(EncryptedCatalog catalog, TableIdentifier name) {
    return WrappedValueKey.all(catalog.loadTable(name).properties());
  }

  /** Whether there is a value key, which encrypts and decrypts. */
  private static boolean works(EncryptedCatalog catalog, String key) {
    boolean exists =
        new ValueKeyTable(catalog).entries().stream().anyMatch(entry -> entry.name().equals(key));
    if (exists) {
      byte[] encrypted = values(catalog).encrypt(key, VALUE, NONE);
      assertThat(values(catalog).decrypt(key, encrypted, NONE)).isEqualTo(VALUE);
    }

    return exists;
  }
}
