package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.MinistackServer;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** S3 Tables as ministack has it: a server that passes over what it does not know, silently. */
class S3TablesRestTest {
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");
  private static final TableIdentifier PLAIN = TableIdentifier.of(TestLake.DB, "plain");

  @TempDir Path folder;

  @Test
  void itsTablesStayPlaintextAndAreNotLost() throws Exception {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    Catalog stock = build(MinistackServer.stock());
    EncryptedCatalog catalog = encrypted();
    catalog.createNamespace(TestLake.DB);
    assertThatThrownBy(() -> builder(catalog, T).withProperty("encryption.key-id", "k1").create())
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll("lake.db.t", "the catalog created it without encryption.key-id");
    assertThat(MinistackServer.objects()).doesNotContain("db/t");

    Table table = TestLake.append(builder(catalog, PLAIN).create(), 1);
    TableMetadata base = TestLake.metadata(table);
    TableMetadata next = TestLake.encrypted(catalog, PLAIN, base);
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, PLAIN, base, next))
        .isInstanceOf(CommitStateUnknownException.class)
        .hasMessageContainingAll("lake.db.plain", "made the commit without key", "Do not drop");

    Table found = stock.loadTable(PLAIN);
    assertThat(TestLake.ids(found)).containsExactly(1L);
    found.updateProperties().remove("encryption.key-id").commit();
    assertThat(TestLake.ids(encrypted().loadTable(PLAIN))).containsExactly(1L);
  }

  /** It finds no location itself. */
  private static Catalog.TableBuilder builder(Catalog catalog, TableIdentifier name) {
    return catalog
        .buildTable(name, TestLake.SCHEMA)
        .withLocation("s3://" + MinistackServer.TABLE_BUCKET + "/db/" + name.name())
        .withProperty("format-version", "3");
  }

  private EncryptedCatalog encrypted() throws Exception {
    Map<String, String> all = new HashMap<>(MinistackServer.stock());
    all.put("encryption.catalog-type", all.remove("type"));
    all.put("catalog-impl", EncryptedCatalog.class.getName());
    all.putAll(TestKeystore.create(folder, "k1").properties());
    return (EncryptedCatalog) build(all);
  }

  private static Catalog build(Map<String, String> properties) {
    return CatalogUtil.buildIcebergCatalog("lake", properties, new Configuration());
  }
}
