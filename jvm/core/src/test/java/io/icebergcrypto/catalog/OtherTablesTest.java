package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Where an engine may create a table of another format, and where not. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST", "HIVE"})
class OtherTablesTest extends LakeFixture {
  private static final Map<String, String> NONE = Map.of();

  private OtherTables others() {
    return catalog.context().otherTables();
  }

  @Test
  void anyNameWithoutAKeyIsFree() {
    catalog.buildTable(T, TestLake.SCHEMA).create();
    others().checkNew(T, Map.of("provider", "parquet", "write.format.default", "avro"));
    others().checkNew(TableIdentifier.of(TestLake.DB, "none"), NONE);
    others().checkNew(TableIdentifier.of("none", "none"), NONE);
  }

  @Test
  void propertiesOfEncryptionAreRefused() {
    for (String name : new String[] {"encryption.key-id", "Encryption.KeyId"}) {
      assertThatThrownBy(() -> others().checkNew(T, Map.of(name, "k1")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll(
              "Table lake.db.t: " + name + " would do nothing", "USING iceberg");
    }
  }

  @Test
  void whereTablesAreEncryptedThereIsNoOther() throws Exception {
    for (String property :
        new String[] {"encryption.required=true", "table-default.encryption.key-id=k1"}) {
      String[] option = property.split("=");
      try (EncryptedCatalog strict = lake.open(Map.of(option[0], option[1]))) {
        assertThatThrownBy(() -> strict.context().otherTables().checkNew(T, NONE))
            .as(property)
            .isInstanceOf(NotSupportedException.class)
            .hasMessageContainingAll("Table lake.db.t: ", "would be plaintext", "USING iceberg");
      }
    }
  }

  @Test
  void anEncryptedTableKeepsItsName() {
    Table table =
        catalog.buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1").create();
    assertThatThrownBy(() -> others().checkName(T))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll(
            "Table lake.db.t: it is encrypted or has keys", "DROP TABLE lake.db.t.");
    assertThat(others().isNotIceberg(T)).isFalse();

    if (backend == Backend.JDBC || backend == Backend.HIVE) { // others do not have it then
      TestLake.path(TestLake.metadata(table).metadataFileLocation()).toFile().delete();
      assertThatThrownBy(() -> others().checkName(T))
          .as("without its metadata, it may be an encrypted one")
          .isInstanceOf(RuntimeException.class);
      assertThat(others().isNotIceberg(T)).isFalse();
    }
  }

  /** Spark's own catalog has it in small letters. */
  @Test
  void aNameInCapitalsIsNoOther() {
    catalog.buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1").create();
    assertThatThrownBy(() -> others().checkName(TableIdentifier.of("DB", "T")))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("it is encrypted or has keys");
  }

  @Test
  void aTableWithValueKeysKeepsItsName() {
    catalog
        .buildTable(T, TestLake.SCHEMA)
        .withProperty("encryption.value-key.a.00000001", "not readable")
        .create();
    assertThatThrownBy(() -> others().checkName(T)).isInstanceOf(NotSupportedException.class);
  }

  @Test
  void onlyAMetastoreHasOthers() {
    TableIdentifier none = TableIdentifier.of(TestLake.DB, "none");
    assertThat(others().isNotIceberg(none)).isEqualTo(backend == Backend.HIVE);
  }
}
