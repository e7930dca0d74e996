package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.NoChmodFileSystem;
import io.icebergcrypto.testing.RustbergServer;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A REST server of another make. iceberg-rust, on which it is, would keep keys, but makes and loads
 * no table with a key id without a KMS of its own: nothing is encrypted there.
 */
class RustbergTest {
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");

  @TempDir Path folder;
  private String uri;

  @Test
  void itsTablesStayPlaintextAndAreNotLost() throws Exception {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    assumeTrue(RustbergServer.isAvailable(), "dev/rustberg.sh builds it, with Rust");
    this.uri = RustbergServer.start(folder.resolve("warehouse"));
    Map<String, String> keystore = TestKeystore.create(folder, "k1").properties();
    EncryptedCatalog catalog = open(keystore);
    catalog.createNamespace(TestLake.DB);

    assertThatThrownBy(() -> TestLake.createTable(catalog, "t", Map.of()))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "creates no table with encryption.key-id", "hint:");
    assertThat(catalog.listTables(TestLake.DB)).isEmpty();

    Table table =
        catalog.buildTable(T, TestLake.SCHEMA).withProperty("format-version", "3").create();
    TestLake.append(table, 1);
    assertThatThrownBy(() -> PlaintextTable.load(catalog, T, "k1"))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "creates no table with encryption.key-id", "hint:");
    assertThat(TestLake.ids(open(keystore).loadTable(T))).containsExactly(1L);

    // were it not for that, it would make the commit, say 409, and never load the table again
    TableMetadata base = TestLake.metadata(table);
    List<Path> files = TestLake.files(table);
    TableMetadata next = TestLake.encrypted(catalog, T, base);
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, next))
        .isInstanceOf(CommitStateUnknownException.class)
        .hasMessageContainingAll("lake.db.t", "may have made the commit", "register");
    assertThat(TestLake.files(table)).containsAll(files);
    EncryptedCatalog other =
        open(
            keystore,
            Map.of(
                "encryption.catalog-type",
                "jdbc",
                "uri",
                "jdbc:sqlite:" + folder.resolve("catalog.db"),
                "warehouse",
                folder.resolve("other").toString()));
    other.createNamespace(TestLake.DB);
    assertThat(TestLake.ids(other.registerTable(T, base.metadataFileLocation())))
        .containsExactly(1L);
  }

  private EncryptedCatalog open(Map<String, String> keystore) throws IOException {
    return open(keystore, Map.of("encryption.catalog-type", "rest", "uri", uri));
  }

  private static EncryptedCatalog open(Map<String, String> keystore, Map<String, String> more)
      throws IOException {
    Map<String, String> all = new HashMap<>(keystore);
    all.putAll(more);
    all.put("catalog-impl", EncryptedCatalog.class.getName());
    all.put("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO");
    Configuration conf = new Configuration();
    NoChmodFileSystem.setIn(conf);
    return (EncryptedCatalog) CatalogUtil.buildIcebergCatalog("lake", all, conf);
  }
}
