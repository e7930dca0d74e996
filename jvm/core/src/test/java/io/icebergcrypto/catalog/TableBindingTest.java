package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.BindingKms;
import io.icebergcrypto.metadata.forwarding.ForwardingOperations;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A KMS that binds keys to the UUID of their table. */
class TableBindingTest {
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");

  @TempDir Path folder;

  @BeforeEach
  void forgetCalls() {
    BindingKms.CALLS.clear();
  }

  private TestLake lake(Backend backend, Map<String, String> more) {
    Map<String, String> all = new HashMap<>(more);
    all.put("encryption.kms-impl", BindingKms.class.getName());
    return new TestLake(backend, folder, all);
  }

  private static String uuid(Table table) {
    return TestLake.metadata(table).uuid();
  }

  @ParameterizedTest
  @EnumSource(names = {"JDBC", "HADOOP", "REST", "HIVE"})
  void eachCallTellsTheTablesUuid(Backend backend) throws IOException {
    TestLake lake = lake(backend, Map.of());
    try (EncryptedCatalog catalog = lake.open(Map.of());
        EncryptedCatalog later = lake.open(Map.of())) {
      Table table = TestLake.createTable(catalog, "t", Map.of());
      String uuid = uuid(table);
      assertThat(BindingKms.CALLS)
          .as("the master key is tried, and a KEK made")
          .containsExactly("wrap none", "unwrap none", "wrap " + uuid, "unwrap " + uuid);

      TestLake.append(table, 1);
      Table loaded = later.loadTable(T);
      assertThat(TestLake.ids(loaded)).containsExactly(1L);
      assertThat(BindingKms.CALLS.subList(4, BindingKms.CALLS.size()))
          .as("another session asks once")
          .containsExactly("unwrap " + uuid);

      Transaction replacement = later.newReplaceTableTransaction(T, TestLake.SCHEMA, false);
      replacement.newAppend().appendFile(TestLake.write(replacement.table(), 2)).commit();
      replacement.commitTransaction();
      assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(2L);
      assertThat(BindingKms.CALLS).as("it is in the caches").hasSize(5);

      TableIdentifier selected = TableIdentifier.of(TestLake.DB, "selected");
      Transaction creation =
          catalog
              .buildTable(selected, TestLake.SCHEMA)
              .withProperty("encryption.key-id", "k1")
              .createOrReplaceTransaction();
      creation.newAppend().appendFile(TestLake.write(creation.table(), 3)).commit();
      creation.commitTransaction();
      assertThat(TestLake.ids(later.loadTable(selected))).containsExactly(3L);
      assertThat(BindingKms.CALLS).contains("wrap " + uuid(catalog.loadTable(selected)));
    } finally {
      if (backend.shared()) {
        Catalog stock = lake.openStock();
        backend.empty(stock);
      }
    }
  }

  @Test
  void theUuidTravelsWithATable() throws Exception {
    // no code of the metadata, so that loading the table unwraps no key
    TestLake lake = lake(Backend.JDBC, Map.of("encryption.metadata-authentication", "off"));
    try (EncryptedCatalog catalog = lake.open(Map.of())) {
      Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
      Table unread = lake.open(Map.of()).loadTable(T);
      byte[] bytes = SerializationUtil.serializeToBytes(SerializableTable.copyOf(unread));
      BindingKms.CALLS.clear();
      Table there = SerializationUtil.deserializeFromBytes(bytes);
      assertThat(unread.currentSnapshot().allManifests(there.io())).hasSize(1);
      assertThat(BindingKms.CALLS).containsOnly("unwrap " + uuid(table));
    }
  }

  @Test
  void aKekOfAnotherTableIsRefusedThoughItIsInTheCache() throws IOException {
    TestLake lake = lake(Backend.JDBC, Map.of("encryption.metadata-authentication", "off"));
    try (EncryptedCatalog catalog = lake.open(Map.of())) {
      EncryptedKey others = kek(TestLake.createTable(catalog, "other", Map.of()));
      TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
      TableOperations stock = ((HasTableOperations) lake.openStock().loadTable(T)).operations();
      TableMetadata metadata = stock.current();
      EncryptedKey own = kek(catalog.loadTable(T));
      stock.commit(
          metadata,
          TableMetadata.buildFrom(metadata)
              .removeEncryptionKey(own.keyId())
              .addEncryptionKey(
                  new BaseEncryptedKey(
                      own.keyId(),
                      others.encryptedKeyMetadata(),
                      own.encryptedById(),
                      own.properties()))
              .build());
      BindingKms.CALLS.clear();
      assertThatThrownBy(() -> TestLake.ids(catalog.loadTable(T)))
          .isInstanceOf(BadWrappedKeyException.class)
          .hasMessageContaining("lake.db.t");
      assertThat(BindingKms.CALLS).containsOnly("unwrap " + metadata.uuid());
    }
  }

  private static EncryptedKey kek(Table table) {
    return TestLake.metadata(table).encryptionKeys().stream()
        .filter(key -> "k1".equals(key.encryptedById()))
        .findFirst()
        .orElseThrow();
  }

  @Test
  void aTableThatGetsAnotherUuidIsTakenBack() throws IOException {
    try (EncryptedCatalog catalog = open(Renaming.class)) {
      assertThatThrownBy(() -> TestLake.createTable(catalog, "t", Map.of()))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", Renaming.UUID, "was dropped again", "hint:");
      assertThat(catalog.tableExists(T)).isFalse();

      Catalog.TableBuilder builder =
          catalog.buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1");
      for (Transaction creation :
          new Transaction[] {builder.createTransaction(), builder.createOrReplaceTransaction()}) {
        creation.newAppend().appendFile(TestLake.write(creation.table(), 1)).commit();
        assertThatThrownBy(creation::commitTransaction).isInstanceOf(NotSupportedException.class);
        assertThat(catalog.tableExists(T)).isFalse();
      }
    }
  }

  @Test
  void aTableThatCannotBeTakenBackIsSaidToBeLeft() throws IOException {
    try (EncryptedCatalog catalog = open(Keeping.class)) {
      assertThatThrownBy(() -> TestLake.createTable(catalog, "t", Map.of()))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", "could not be dropped again");
    }
  }

  private EncryptedCatalog open(Class<? extends Catalog> behind) {
    EncryptedCatalog catalog = new EncryptedCatalog();
    Map<String, String> all = new HashMap<>();
    all.put("encryption.catalog-impl", behind.getName());
    all.put("encryption.kms-impl", BindingKms.class.getName());
    all.put("warehouse", folder.resolve("warehouse").toString());
    catalog.initialize("lake", all);
    catalog.createNamespace(TestLake.DB);
    return catalog;
  }

  /** Which drops none of them. */
  public static final class Keeping extends Renaming {
    @Override
    public boolean dropTable(TableIdentifier identifier, boolean purge) {
      return false;
    }
  }

  /** Gives new tables a UUID of its own. */
  public static class Renaming extends InMemoryCatalog {
    static final String UUID = java.util.UUID.nameUUIDFromBytes(new byte[0]).toString();

    @Override
    protected TableOperations newTableOps(TableIdentifier identifier) {
      TableOperations ops = super.newTableOps(identifier);
      return new ForwardingOperations() {
        @Override
        public TableOperations below() {
          return ops;
        }

        @Override
        public void commit(TableMetadata base, TableMetadata metadata) {
          String json = TableMetadataParser.toJson(metadata);
          ops.commit(base, TableMetadataParser.fromJson(json.replace(metadata.uuid(), UUID)));
        }

        @Override
        public TableOperations temp(TableMetadata uncommitted) {
          return ops.temp(uncommitted);
        }
      };
    }
  }
}
