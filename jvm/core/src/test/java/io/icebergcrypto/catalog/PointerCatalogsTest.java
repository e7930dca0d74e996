package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.NoChmodFileSystem;
import io.icebergcrypto.testing.PointerServer;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import io.icebergcrypto.values.ValueKeyTable;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Glue and Nessie keep a pointer only: the metadata of encrypted tables is authenticated there. */
@ParameterizedClass
@EnumSource
class PointerCatalogsTest {
  private static final Namespace DB = TestLake.DB;
  private static final TableIdentifier T = TableIdentifier.of(DB, "t");
  private static final TableIdentifier MOVED = TableIdentifier.of(DB, "moved");

  @Parameter PointerServer server;
  @TempDir Path folder;
  private TestKeystore keystore;
  private EncryptedCatalog catalog;

  @BeforeEach
  void open() throws IOException {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    assumeTrue(server.isAvailable(), "Nessie's server needs a JDK of 21 or later: not tested");
    this.keystore = TestKeystore.create(folder, "k1");
    this.catalog = open(Map.of());
    catalog.createNamespace(DB);
  }

  @AfterEach
  void empty() throws IOException {
    if (catalog == null) {
      return; // left to the night
    }

    Catalog stock = build(server.stock(folder));
    stock.listTables(DB).forEach(table -> stock.dropTable(table, false));
    ((SupportsNamespaces) stock).dropNamespace(DB);
    catalog.close();
  }

  @Test
  void theLifeOfATable() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    TestLake.append(table, 2);
    assertThat(metadataFile(table).getParent().getFileName().toString())
        .isEqualTo("authenticated-" + table.uuid());

    Table elsewhere = open(Map.of()).loadTable(T); // another session
    TestLake.append(elsewhere, 3);
    table.refresh();
    assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L);
    table.updateProperties().set("owner.team", "a").commit();
    if (server == PointerServer.NESSIE) { // other branches may reach the files
      assertThatThrownBy(table::expireSnapshots).hasMessageContaining("GC is disabled");
      table.updateProperties().set("gc.enabled", "true").commit(); // of which its catalog warns
      table = catalog.loadTable(T);
    }
    table.expireSnapshots().expireOlderThan(System.currentTimeMillis()).retainLast(1).commit();
    assertThat(TestLake.ids(open(Map.of()).loadTable(T))).containsExactly(1L, 2L, 3L);
    assertThat(TestLake.files(table))
        .allSatisfy(file -> assertThat(TestLake.magic(file).encrypted()).isTrue());

    if (server == PointerServer.NESSIE) { // moto does not rename as Glue's API says
      catalog.renameTable(T, MOVED);
      assertThat(TestLake.ids(open(Map.of()).loadTable(MOVED))).containsExactly(1L, 2L, 3L);
      assertThat(catalog.dropTable(MOVED, false)).isTrue();
    } else {
      assertThat(catalog.dropTable(T, true)).isTrue();
      assertThat(TestLake.files(table)).isEmpty();
    }
    assertThat(catalog.listTables(DB)).isEmpty();
  }

  @Test
  void editedMetadataIsRefused() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of("owner.team", "a-team"));
    TestLake.append(table, 1);
    Path file = metadataFile(table);
    replace(file, Files.readString(file).replace("a-team", "b-team"));
    assertThatThrownBy(() -> open(Map.of()).loadTable(T).refresh())
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("its MAC does not match", file.getFileName().toString());
  }

  @Test
  void anOldFileInItsPlaceIsRefused() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    String old = Files.readString(metadataFile(table));
    TestLake.append(table, 2);
    replace(metadataFile(table), old);
    assertThatThrownBy(() -> TestLake.ids(open(Map.of()).loadTable(T)))
        .hasMessageContaining(
            server == PointerServer.NESSIE // whose catalog sets its own pointer's snapshot
                ? "Cannot set main to unknown snapshot"
                : "was put in place of version");
  }

  @Test
  void aStockClientsCommitIsRefused() throws IOException {
    TestLake.createTable(catalog, "t", Map.of());
    Catalog stock = build(server.stock(folder));
    stock.loadTable(T).updateProperties().remove("encryption.key-id").commit();
    assertThatThrownBy(() -> open(Map.of()).loadTable(T).refresh())
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("encryption.key-id is gone");
  }

  @Test
  void metadataThatIsNoneIsRefusedAtOnce() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    replace(metadataFile(table), "{\"format-version\"");
    long start = System.nanoTime();
    assertThatThrownBy(() -> open(Map.of()).loadTable(T))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("lake.db.t", "is not table metadata");
    assertThat(System.nanoTime() - start).isLessThan(10_000_000_000L);
  }

  @Test
  void valueKeysStayUnderEveryNameOfTheirTable() throws IOException {
    assumeTrue(server == PointerServer.NESSIE, "no other catalog takes a branch for a name");

    EncryptedCatalog keyed = open(Map.of(ValueKeyProperties.TABLE, "db.t"));
    new ValueKeyTable(keyed).create("a", "k1");
    for (String name : List.of("t", "t@main", "`t@main`", "'t@main'")) {
      TableIdentifier table = TableIdentifier.of(DB, name);
      assertThatThrownBy(() -> keyed.dropTable(table, false))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContaining("it keeps value keys");
      assertThatThrownBy(() -> keyed.renameTable(table, MOVED))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContaining("it keeps value keys");
    }
    TableIdentifier full = TableIdentifier.of("lake", "db", "t");
    assertThatThrownBy(() -> keyed.renameTable(full, MOVED))
        .isInstanceOf(NotSupportedException.class);
    assertThat(keyed.tableExists(T)).isTrue();
  }

  /** Nessie gives gc.enabled=false to tables that it makes, but not to those that it registers. */
  @Test
  void whatOtherBranchesNeedStays() throws IOException {
    assumeTrue(server == PointerServer.NESSIE, "no other catalog has branches of its own");

    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    table.updateProperties().remove("gc.enabled").commit();
    Table registered = catalog.loadTable(T);
    Transaction transaction = registered.newTransaction();
    for (ThrowingCallable deletes :
        List.<ThrowingCallable>of(
            registered::expireSnapshots,
            transaction::expireSnapshots,
            () -> catalog.context().checkPurge(T, null))) {
      assertThatThrownBy(deletes)
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.t", "gc.enabled=true, other branches may need");
    }
    transaction.updateProperties().set("gc.enabled", "true").commit();
    transaction.expireSnapshots().commit();

    keystore.delete("k1");
    EncryptedCatalog withoutKey = open(Map.of());
    assertThatThrownBy(() -> withoutKey.context().purgeWithoutKey(T, true))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "other branches", "without");
    assertThat(withoutKey.tableExists(T)).isTrue();
    keystore.add("k1");
    assertThat(TestLake.files(table)).isNotEmpty();
  }

  @Test
  void offIsAChoice() throws IOException {
    EncryptedCatalog off = open(Map.of("encryption.metadata-authentication", "off"));
    assertThat(off.context().authenticatesMetadata()).isFalse();
    assertThat(catalog.context().authenticatesMetadata()).isTrue();
    assertThatThrownBy(() -> open(Map.of("encryption.metadata-authentication", "perhaps")))
        .isInstanceOf(InvalidConfigurationException.class);
  }

  private static Path metadataFile(Table table) {
    return TestLake.path(TestLake.metadata(table).metadataFileLocation());
  }

  private static void replace(Path file, String content) throws IOException {
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    Files.writeString(file, content);
  }

  private EncryptedCatalog open(Map<String, String> more) throws IOException {
    Map<String, String> all = new HashMap<>(server.stock(folder));
    all.put("encryption.catalog-type", all.remove("type"));
    all.put("catalog-impl", EncryptedCatalog.class.getName());
    all.putAll(keystore.properties());
    all.putAll(more);
    return (EncryptedCatalog) build(all);
  }

  private static Catalog build(Map<String, String> properties) {
    Configuration conf = new Configuration();
    NoChmodFileSystem.setIn(conf);
    return CatalogUtil.buildIcebergCatalog("lake", properties, conf);
  }
}
