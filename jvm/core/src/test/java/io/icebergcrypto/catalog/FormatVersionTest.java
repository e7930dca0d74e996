package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.spark.verify.Depth;
import io.icebergcrypto.spark.verify.FileCheck;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.Map;
import org.apache.iceberg.Files;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Format version 4, for which the Iceberg specification does not define encryption yet. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HIVE"})
class FormatVersionTest extends LakeFixture {
  private static final Map<String, String> V4 = Map.of("format-version", "4");
  private static final Map<String, String> ENCRYPTED_V4 =
      Map.of("format-version", "4", "encryption.key-id", "k1");

  private static void assertRefused(ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.", "format version 4", "hint:", "format version 3");
  }

  /** Locations in that format have a scheme. */
  private Table create(Catalog where, Map<String, String> properties) {
    return where
        .buildTable(T, TestLake.SCHEMA)
        .withLocation(folder.toUri() + "t")
        .withProperties(properties)
        .create();
  }

  @Test
  void noEncryptedTableGetsIt() throws IOException {
    assertRefused(() -> create(catalog, ENCRYPTED_V4));
    assertThat(catalog.tableExists(T)).isFalse();

    Table table = TestLake.append(create(catalog, Map.of("encryption.key-id", "k1")), 1);
    assertRefused(() -> table.updateProperties().set("format-version", "4").commit());
    assertRefused(
        () ->
            catalog
                .buildTable(T, TestLake.SCHEMA)
                .withProperties(V4)
                .replaceTransaction()
                .commitTransaction());
    assertThat(TestLake.metadata(lake.open(Map.of()).loadTable(T)).formatVersion()).isEqualTo(3);
    TestLake.append(table, 2);
    assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
  }

  @Test
  void aPlaintextTableHasIt() throws IOException {
    Table table = create(catalog, V4);
    assertThat(TestLake.metadata(table).formatVersion()).isEqualTo(4);
    assertRefused(() -> PlaintextTable.load(catalog, T, "k1"));
  }

  /** Stock Iceberg makes such a table on Hive. */
  @Test
  void oneThatIsThereIsReadAndIsNotRegisteredElsewhere() throws IOException {
    Assumptions.assumeTrue(backend == Backend.HIVE);
    Catalog stock = lake.openStockWithKeys();
    TestLake.append(create(stock, ENCRYPTED_V4), 1);
    Table table = catalog.loadTable(T);
    for (ManifestFile manifest : table.currentSnapshot().allManifests(table.io())) {
      assertThat(
              new FileCheck(Depth.MAGIC)
                  .check(
                      FileKind.MANIFEST,
                      FileKind.formatOfManifest(manifest.path()),
                      Files.localInput(TestLake.path(manifest.path()).toFile()),
                      manifest.length(),
                      manifest.keyMetadata())
                  .words())
          .as(manifest.path())
          .isNull();
    }

    String file = TestLake.metadata(table).metadataFileLocation();
    catalog.dropTable(T, false);
    assertRefused(() -> catalog.registerTable(T, file));
  }
}
