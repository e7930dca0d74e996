package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.NamespaceKeys.Another;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The master key that a namespace gives to its new tables, on each catalog. */
class NamespaceKeysTest {
  private static final String KEY = "encryption.key-id";
  private static final Namespace SALES = Namespace.of("sales");
  private static final TableIdentifier SALES_T = TableIdentifier.of(SALES, "t");

  private static Map<String, String> keyId(String keyId) {
    return property(KEY, keyId);
  }

  /** Iceberg's REST client asks for a key that is null, which Map.of answers with an error. */
  private static Map<String, String> property(String name, String value) {
    return new HashMap<>(Map.of(name, value));
  }

  private static String keyOf(Table table) {
    return table.properties().get(KEY);
  }

  private static String create(Catalog catalog, TableIdentifier table) {
    return keyOf(catalog.buildTable(table, TestLake.SCHEMA).create());
  }

  @Nested
  @ParameterizedClass
  @EnumSource(names = {"JDBC", "REST", "HIVE"})
  class WhereNamespacesHaveProperties extends LakeFixture {
    @Test
    void newTablesGetTheKey() {
      catalog.createNamespace(SALES, keyId("k2"));
      assertThat(catalog.loadNamespaceMetadata(SALES)).containsEntry(KEY, "k2");

      Table table = catalog.buildTable(SALES_T, TestLake.SCHEMA).create();
      assertThat(keyOf(table)).isEqualTo("k2");
      assertThat(TestLake.metadata(table).formatVersion()).isEqualTo(3);
      TestLake.append(table, 1);
      assertThat(TestLake.files(table))
          .isNotEmpty()
          .allMatch(file -> TestLake.magic(file).encrypted());

      TableIdentifier other = TableIdentifier.of(SALES, "other");
      Transaction created = catalog.buildTable(other, TestLake.SCHEMA).createTransaction();
      TestLake.append(created.table(), 1);
      created.commitTransaction();
      assertThat(keyOf(catalog.loadTable(other))).isEqualTo("k2");

      TableIdentifier third = TableIdentifier.of(SALES, "third");
      catalog.buildTable(third, TestLake.SCHEMA).createOrReplaceTransaction().commitTransaction();
      assertThat(keyOf(catalog.loadTable(third))).isEqualTo("k2");
      assertThat(create(catalog, TableIdentifier.of(TestLake.DB, "plain"))).isNull();
    }

    @Test
    void aTableKeepsItsKeyWhenItsNamespaceGetsAnother() {
      catalog.createNamespace(SALES, keyId("k1"));
      TestLake.append(catalog.buildTable(SALES_T, TestLake.SCHEMA).create(), 1);
      catalog.setProperties(SALES, keyId("k2"));
      assertThat(TestLake.ids(catalog.loadTable(SALES_T))).containsExactly(1L);
      catalog.buildTable(SALES_T, TestLake.SCHEMA).createOrReplaceTransaction().commitTransaction();
      assertThat(keyOf(catalog.loadTable(SALES_T))).isEqualTo("k1");
      assertThat(create(catalog, TableIdentifier.of(SALES, "new"))).isEqualTo("k2");
      catalog.removeProperties(SALES, new HashSet<>(Set.of(KEY)));
      assertThat(create(catalog, TableIdentifier.of(SALES, "plain"))).isNull();
    }

    /** After a rotation of all tables, new ones must not get the former key. */
    @Test
    void whatGivesNewTablesAnotherKeyIsFound() throws IOException {
      catalog.createNamespace(SALES, keyId("k1"));
      Another found = catalog.context().namespaceKeys().another(SALES, "k2");
      assertThat(found.name()).isEqualTo("lake.sales");
      assertThat(found.problem()).isEqualTo("its " + KEY + " gives new tables master key 'k1'");
      assertThat(found.hint())
          .isEqualTo("ALTER NAMESPACE lake.sales SET PROPERTIES ('" + KEY + "'='k2').");
      assertThat(catalog.context().namespaceKeys().another(SALES, "k1")).isNull();
      Namespace db = Namespace.of("db");
      assertThat(catalog.context().namespaceKeys().another(db, "k2")).isNull();
      try (EncryptedCatalog withDefault = lake.open(Map.of("table-default." + KEY, "k1"))) {
        NamespaceKeys keys = withDefault.context().namespaceKeys();
        assertThat(keys.another(SALES, "k1")).isNull();
        assertThat(keys.another(Namespace.empty(), "k1")).isNull();
        assertThat(keys.another(db, "k2").toString())
            .contains("name=lake,", "table-default." + KEY + " gives", "ALTER NAMESPACE lake.db ");
        assertThat(keys.another(Namespace.empty(), "k2").hint())
            .isEqualTo(
                "Set table-default." + KEY + " where the catalog, or its server, is configured.");
      }

      catalog.setProperties(SALES, keyId("k2"));
      try (EncryptedCatalog overruled = lake.open(Map.of("table-override." + KEY, "k1"))) {
        assertThat(overruled.context().namespaceKeys().another(SALES, "k2").toString())
            .contains("name=lake,", "'k1'", "Set table-override." + KEY + " where the catalog");
      }
    }

    @Test
    void statementThenNamespaceThenCatalog() throws IOException {
      catalog.createNamespace(SALES, keyId("k2"));
      EncryptedCatalog withDefault = lake.open(Map.of("table-default." + KEY, "k1"));
      assertThat(create(withDefault, SALES_T)).isEqualTo("k2");
      assertThat(create(withDefault, TableIdentifier.of(TestLake.DB, "t"))).isEqualTo("k1");
      Table named =
          withDefault
              .buildTable(TableIdentifier.of(SALES, "named"), TestLake.SCHEMA)
              .withProperty(KEY, "k1")
              .create();
      assertThat(keyOf(named)).isEqualTo("k1");
      withDefault.close();

      EncryptedCatalog overrules = lake.open(Map.of("table-override." + KEY, "k1"));
      assertThat(create(overrules, TableIdentifier.of(SALES, "overruled"))).isEqualTo("k1");
      overrules.close();
    }

    @Test
    void aKeyThatCannotBeUsedIsRefusedBeforeTheNamespaceHasIt() throws IOException {
      EncryptedCatalog limited = lake.open(Map.of("encryption.allowed-key-ids", "k2, nope"));
      assertThatThrownBy(() -> limited.createNamespace(SALES, keyId("k1")))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContainingAll("Namespace lake.sales", "encryption.allowed-key-ids");
      assertThatThrownBy(() -> limited.createNamespace(SALES, keyId("nope")))
          .isInstanceOf(KeyNotFoundException.class)
          .hasMessageContainingAll("Namespace lake.sales", "'nope'");
      assertThatThrownBy(() -> limited.createNamespace(SALES, keyId(" ")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("Namespace lake.sales: encryption.key-id is empty");
      assertThat(limited.namespaceExists(SALES)).isFalse();
      limited.createNamespace(SALES, keyId("k2"));
      assertThatThrownBy(() -> limited.setProperties(SALES, keyId("k1")))
          .isInstanceOf(AccessDeniedException.class);
      assertThatThrownBy(() -> limited.setProperties(SALES, keyId("nope")))
          .isInstanceOf(KeyNotFoundException.class);
      assertThat(limited.loadNamespaceMetadata(SALES)).containsEntry(KEY, "k2");
      limited.close();
    }

    @Test
    void whatAnotherClientSetIsCheckedAtCreate() throws IOException {
      SupportsNamespaces namespaces = (SupportsNamespaces) lake.openStock();
      namespaces.createNamespace(SALES, property("encryption.keyid", "k1"));
      assertThatThrownBy(() -> create(catalog, SALES_T))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("Namespace lake.sales", "Did you mean encryption.key-id?");
      namespaces.setProperties(SALES, keyId("nope"));
      assertThatThrownBy(() -> create(catalog, SALES_T))
          .isInstanceOf(KeyNotFoundException.class)
          .hasMessageContainingAll("lake.sales.t", "is a property of namespace sales");
      assertThat(catalog.tableExists(SALES_T)).isFalse();
    }

    @Test
    void itSatisfiesRequired() throws IOException {
      catalog.createNamespace(SALES, keyId("k2"));
      EncryptedCatalog required = lake.open(Map.of("encryption.required", "true"));
      assertThat(create(required, SALES_T)).isEqualTo("k2");
      assertThatThrownBy(() -> create(required, TableIdentifier.of(TestLake.DB, "t")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("namespace property encryption.key-id");
      required.close();
    }

    @Test
    void aPlaintextTableIsNotReplaced() {
      catalog.createNamespace(SALES);
      assertThat(create(catalog, SALES_T)).isNull();
      catalog.setProperties(SALES, keyId("k1"));
      assertThatThrownBy(
              () -> catalog.buildTable(SALES_T, TestLake.SCHEMA).createOrReplaceTransaction())
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.sales.t", "is a property of namespace sales");
    }
  }

  @Nested
  @ParameterizedClass
  @EnumSource(names = {"JDBC", "REST"})
  class WhereNamespacesHaveParents extends LakeFixture {
    @Test
    void theNearestParentCounts() {
      catalog.createNamespace(SALES, keyId("k1"));
      Namespace eu = Namespace.of("sales", "eu");
      Namespace north = Namespace.of("sales", "eu", "north");
      catalog.createNamespace(eu);
      catalog.createNamespace(north);
      assertThat(create(catalog, TableIdentifier.of(north, "t"))).isEqualTo("k1");
      catalog.setProperties(eu, keyId("k2"));
      assertThat(create(catalog, TableIdentifier.of(north, "u"))).isEqualTo("k2");
      assertThat(create(catalog, TableIdentifier.of(SALES, "u"))).isEqualTo("k1");
    }
  }

  @Nested
  @ParameterizedClass
  @EnumSource(names = {"HADOOP"})
  class WhereNamespacesHaveNone extends LakeFixture {
    @Test
    void aKeyIsRefused() {
      assertThatThrownBy(() -> catalog.createNamespace(SALES, Map.of(KEY, "k1", "owner", "ada")))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("Namespace lake.sales", "table-default.encryption.key-id");
      assertThat(catalog.namespaceExists(SALES)).isFalse();
      assertThatThrownBy(() -> catalog.setProperties(TestLake.DB, keyId("k1")))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContaining("Namespace lake.db");
      assertThat(create(catalog, TableIdentifier.of(TestLake.DB, "t"))).isNull();
    }
  }

  @Nested
  @ParameterizedClass
  @EnumSource(names = {"IN_MEMORY"})
  class CatalogsOfOthers extends LakeFixture {
    private EncryptedCatalog over(Class<? extends Catalog> behind) throws IOException {
      return lake.open(Map.of("encryption.catalog-impl", behind.getName()));
    }

    @Test
    void oneThatDropsPropertiesIsFoundOut() throws IOException {
      try (EncryptedCatalog forgets = over(Forgetful.class)) {
        assertThatThrownBy(() -> forgets.createNamespace(SALES, keyId("k1")))
            .isInstanceOf(NotSupportedException.class)
            .hasMessageContaining("Namespace lake.sales: encryption.key-id was not kept");
      }
    }

    @Test
    void aNamespaceThatMayNotBeReadIsNotTakenForOneWithoutAKey() throws IOException {
      try (EncryptedCatalog shut = over(Shut.class)) {
        shut.createNamespace(SALES);
        assertThatThrownBy(() -> create(shut, SALES_T))
            .isInstanceOf(AccessDeniedException.class)
            .hasMessageContaining("Namespace lake.sales");
        Table named = shut.buildTable(SALES_T, TestLake.SCHEMA).withProperty(KEY, "k1").create();
        assertThat(keyOf(named)).as("the namespace is not asked").isEqualTo("k1");
      }
    }
  }

  /** Drops what a namespace is given. */
  public static final class Forgetful extends InMemoryCatalog {
    @Override
    public void createNamespace(Namespace namespace, Map<String, String> metadata) {
      super.createNamespace(namespace, Map.of());
    }
  }

  /** Lets nobody see a namespace's properties. */
  public static final class Shut extends InMemoryCatalog {
    @Override
    public Map<String, String> loadNamespaceMetadata(Namespace namespace) {
      throw new ForbiddenException("not for you");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "encryption.keyid, Did you mean encryption.key-id?",
    "Encryption.Key-Id, Did you mean encryption.key-id?",
    "encryption_key_id, Did you mean encryption.key-id?",
    "encryption.anything, Did you mean encryption.key-id?",
    "encryption.data-key-length, belongs to a table",
    "encryption.required, belongs to a catalog",
    "encryption.kms.vault.address, belongs to a catalog",
  })
  void anotherPropertyIsRefused(String name, String says) {
    assertThatThrownBy(() -> PropertyNames.checkNamespace("lake.sales", Map.of(name, "k1")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("Namespace lake.sales", name, says);
  }
}
