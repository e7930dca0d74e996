package io.icebergcrypto.lifecycle.repair;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.audit.diagnosis.Finding.Kind;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** What a stock client can do to an encrypted table on Hive, where stock Iceberg encrypts. */
@ParameterizedClass
@EnumSource(names = "HIVE")
class RepairOnHiveTest extends LakeFixture {
  private Catalog openStock() throws IOException {
    Map<String, String> properties = new HashMap<>(backend.properties(folder));
    properties.putAll(TestKeystore.existing(folder).properties());
    properties.remove("encryption.kms-type");
    properties.put("encryption.kms-impl", "io.icebergcrypto.kms.KeystoreKmsClient");
    return CatalogUtil.buildIcebergCatalog("lake", properties, backend.conf(folder));
  }

  private static void set(Table table, String key, String value) {
    table.updateProperties().set(key, value).commit();
  }

  @Test
  void aDataKeyLengthThatNoKeyCanHave() throws IOException {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    Table stock = openStock().loadTable(T);
    set(stock, "encryption.data-key-length", "17");
    assertThatThrownBy(() -> set(stock, "encryption.data-key-length", "16"))
        .as("control: a stock client cannot take it back");
    TableRepair found = TableRepair.run(catalog, T, false);
    assertThat(found.findings()).singleElement().matches(Finding::repairable);
    TableRepair done = TableRepair.run(catalog, T, true);
    assertThat(done.findings()).extracting(Finding::kind).containsExactly(Kind.DATA_KEY_LENGTH);
    assertThat(done.ok()).isTrue();
    assertThat(TableRepair.run(catalog, T, true).findings()).isEmpty();
    TestLake.append(catalog.loadTable(T), 2);
    TestLake.append(openStock().loadTable(T), 3);
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(1L, 2L, 3L);

    assertThatThrownBy(
            () -> {
              set(openStock().loadTable(T), "encryption.data-key-length", "17");
              set(catalog.loadTable(T), "encryption.data-key-length", "32");
            })
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(
            "CALL lake.system.repair_table(table => 'lake.db.t', confirm => true)");
    assertThat(TableRepair.run(catalog, T, true).ok()).isTrue();
    set(openStock().loadTable(T), "encryption.data-key-length", "many");
    List<Finding> left = TableRepair.run(catalog, T, true).findings(); // nobody can load it
    assertThat(left).singleElement().matches(finding -> finding.kind() == Kind.DATA_KEY_LENGTH);
    assertThat(left.get(0).repairable()).isFalse();
    assertThat(left.get(0).hint()).contains("In the Hive metastore");
  }

  @Test
  void theKeyIdStaysAsItIs() throws IOException {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    Table stock = openStock().loadTable(T);
    assertThatThrownBy(() -> stock.updateProperties().remove("encryption.key-id").commit())
        .hasMessageContaining("Cannot remove key ID");
    assertThatThrownBy(() -> set(stock, "encryption.key-id", "k2"))
        .hasMessageContaining("Cannot modify key ID");
    set(stock, "write.format.default", "orc");
    assertThat(TableRepair.run(catalog, T, true).ok()).isTrue();
    assertThat(TableRepair.run(catalog, T, false).findings()).isEmpty();
  }
}
