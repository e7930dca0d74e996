package io.icebergcrypto.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Misspelt properties: Iceberg keeps them and encrypts nothing. */
class PropertyNamesTest {
  private static final String KEPT = "encryption.plaintext-metadata";
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");

  @ParameterizedTest
  @CsvSource({
    "encryption.keyid, encryption.key-id",
    "encryption.key_id, encryption.key-id",
    "encryption.key.id, encryption.key-id",
    "Encryption.Key-Id, encryption.key-id",
    "encryption.master-key-id, encryption.key-id",
    "encryption_key_id, encryption.key-id",
    "encryption-key-id, encryption.key-id",
    "encription.key-id, encryption.key-id",
    "ENCRPTION.keyId, encryption.key-id",
    "key-id, encryption.key-id",
    "master-key-id, encryption.key-id",
    "encription.data-key-length, encryption.data-key-length",
    "encryption.data-key-lenght, encryption.data-key-length",
    "encryption.datakeylength, encryption.data-key-length",
    "encryption.dek-length, encryption.data-key-length",
  })
  void aMisspeltTablePropertyIsRefused(String name, String nearest) {
    assertThatThrownBy(() -> PropertyNames.checkTable("lake.db.t", Map.of(), Map.of(name, "k1")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "There is no table property " + name)
        .hasMessageContaining("Did you mean " + nearest + "?");
    assertThatCode(
            () -> PropertyNames.checkTable("t", Map.of(name, "k1"), Map.of(name, "k1", "x", "y")))
        .as("what is there already does not lock the table")
        .doesNotThrowAnyException();
    assertThatThrownBy(() -> PropertyNames.checkCatalog(Map.of("table-default." + name, "k1")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("Did you mean " + nearest + "?");
  }

  @ParameterizedTest
  @CsvSource({
    "encryption.require, encryption.required",
    "encryption.kmstype, encryption.kms-type",
    "encryption.kms_type, encryption.kms-type",
    "encryption.kms-impls, encryption.kms-impl",
    "encryption.plaintext-file, encryption.plaintext-files",
    "encryption.expose-keymetadata, encryption.expose-key-metadata",
    "encryption.statistic, encryption.statistics",
  })
  void aMisspeltCatalogPropertyIsRefused(String name, String nearest) {
    assertThatThrownBy(() -> PropertyNames.checkCatalog(Map.of(name, "x")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("There is no catalog property " + name)
        .hasMessageContaining("Did you mean " + nearest + "?");
  }

  @Test
  void aPropertyInTheWrongPlaceIsRefused() {
    assertThatThrownBy(() -> PropertyNames.checkCatalog(Map.of("encryption.key-id", "k1")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("table-default.encryption.key-id");
    assertThatThrownBy(
            () -> PropertyNames.checkTable("t", Map.of(), Map.of("encryption.required", "true")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("belongs to a catalog");
  }

  @Test
  void knownNamesAndThoseOfOthersPass() {
    PropertyNames.checkCatalog(
        Map.of(
            "encryption.kms.keystore.path", "x",
            "ENCRYPTION.REQUIRED", "true",
            "table-default.encryption.key-id", "k1",
            "warehouse", "x",
            "io.encryption", "x"));
    PropertyNames.OF_CATALOGS.forEach(name -> PropertyNames.checkCatalog(Map.of(name, "x")));
    PropertyNames.checkTable(
        "t", Map.of(), Map.of("encryption.key-id", "k1", "owner", "x", "encryptions", "y"));
  }

  private static void assertOnlyOurs(ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.", KEPT, "cannot be changed by users", "purge_plaintext");
  }

  /** Names that other programs have set are no reason to refuse a table or a namespace. */
  @Test
  void whatIsStoredMayBeLikeAKnownName() {
    Map<String, String> properties = Map.of("key_id", "x", "encription.key-id", "x");
    PropertyNames.checkRegistered("lake.db.t", properties);
    PropertyNames.checkStoredNamespace("db", properties);
    assertThatThrownBy(
            () -> PropertyNames.checkRegistered("lake.db.t", Map.of("encryption.keyid", "x")))
        .isInstanceOf(InvalidConfigurationException.class);
  }

  @Test
  void everyWayToSetOneIsGuarded(@TempDir Path folder) throws IOException {
    TestLake lake =
        new TestLake(Backend.JDBC, folder, TestKeystore.create(folder, "k1", "k2").properties());
    Catalog stock = lake.openStock();
    ((SupportsNamespaces) stock).createNamespace(TestLake.DB);
    stock.buildTable(T, TestLake.SCHEMA).withProperty("encryption.keyid", "k1").create();
    assertThat(stock.loadTable(T).properties()).as("control").containsKey("encryption.keyid");
    stock.dropTable(T);

    Catalog catalog = lake.open(Map.of());
    Catalog.TableBuilder wrong =
        catalog.buildTable(T, TestLake.SCHEMA).withProperty("encryption.keyid", "k1");
    assertThatThrownBy(wrong::create).isInstanceOf(InvalidConfigurationException.class);
    assertThatThrownBy(wrong::createTransaction).isInstanceOf(InvalidConfigurationException.class);
    assertThatThrownBy(wrong::createOrReplaceTransaction)
        .isInstanceOf(InvalidConfigurationException.class);
    Table plain = catalog.createTable(T, TestLake.SCHEMA);
    assertThatThrownBy(wrong::replaceTransaction).isInstanceOf(InvalidConfigurationException.class);
    assertThatThrownBy(() -> plain.updateProperties().set("encryption.keyid", "k1").commit())
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("lake.db.t");
    assertOnlyOurs(() -> plain.updateProperties().set(KEPT, "x"));
    assertOnlyOurs(() -> plain.newTransaction().updateProperties().set(KEPT, "x")); // as Spark does
    Transaction unguarded = plain.newTransaction();
    unguarded.table().updateProperties().set(KEPT, "x").commit();
    unguarded.commitTransaction();
    plain.refresh();
    assertOnlyOurs(() -> plain.updateProperties().set(KEPT, "y"));
    Transaction removal = plain.newTransaction();
    removal.updateProperties().remove(KEPT).commit();
    removal.commitTransaction();
    plain.refresh();
    assertThat(plain.properties()).doesNotContainKey(KEPT);
    Table encrypted =
        catalog
            .buildTable(TableIdentifier.of(TestLake.DB, "kept"), TestLake.SCHEMA)
            .withProperty("encryption.key-id", "k1")
            .create();
    assertOnlyOurs(() -> encrypted.updateProperties().set(KEPT, "x"));
    assertOnlyOurs(() -> encrypted.updateProperties().set(KEPT, "x").remove(KEPT));
    assertOnlyOurs(() -> encrypted.newTransaction().updateProperties().set(KEPT, "x"));
    assertOnlyOurs(
        () ->
            catalog
                .buildTable(TableIdentifier.of(TestLake.DB, "new"), TestLake.SCHEMA)
                .withProperty(KEPT, "x")
                .create());
    encrypted.updateProperties().set("owner", "me").remove("other").remove(KEPT).commit();
    assertThatThrownBy(() -> lake.open(Map.of("encryption.requird", "true")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("Catalog lake", "encryption.required");
  }
}
