package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.CountingFileIO;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.SeekableInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What operations ask of the storage: no more than stock Iceberg's encryption does, on Hive, but
 * for a look at each Parquet file that a commit adds, and at the metadata right before a purge
 * drops the table.
 */
class StorageRequestsTest {
  private static final Set<String> ADD_A_FILE =
      Set.of("first append", "append", "overwrite", "append after a conflict");

  private static final Map<String, String> V3 = Map.of("format-version", "3");

  @TempDir Path folder;

  private record CloseableCatalog(Catalog catalog) implements Closeable {
    @Override
    public void close() throws IOException {
      ((Closeable) catalog).close();
    }
  }

  private CloseableCatalog open(boolean ours) throws IOException {
    return open(ours, Map.of());
  }

  private CloseableCatalog open(boolean ours, Map<String, String> more) throws IOException {
    Map<String, String> all =
        new HashMap<>(ours ? Backend.HIVE.encrypted(folder) : Backend.HIVE.properties(folder));
    all.putAll(TestKeystore.existing(folder).properties());
    all.put("io-impl", CountingFileIO.class.getName());
    all.putAll(more);
    if (!ours) {
      all.remove("encryption.kms-type");
      all.put("encryption.kms-impl", "io.icebergcrypto.kms.KeystoreKmsClient");
    }

    return new CloseableCatalog(
        CatalogUtil.buildIcebergCatalog("lake", all, Backend.HIVE.conf(folder)));
  }

  @Test
  void expiryReadsEachListOnce() throws IOException {
    TestKeystore.create(folder, "k1");
    try (CloseableCatalog catalog = open(true)) {
      Backend.HIVE.empty(catalog.catalog);
      ((SupportsNamespaces) catalog.catalog).createNamespace(TestLake.DB);
      Table table = TestLake.createTable(catalog.catalog, "old", V3);
      for (int i = 0; i < 5; i++) {
        TestLake.append(table, i);
      }

      CountingFileIO.reset();
      table.expireSnapshots().expireOlderThan(Long.MAX_VALUE).retainLast(2).commit();
      assertThat(CountingFileIO.counts())
          .containsEntry("open list", 5)
          .containsEntry("delete list", 3);
      Backend.HIVE.empty(catalog.catalog);
    }
  }

  @Test
  void icebergsCacheOfManifestsHasThemDecrypted() throws IOException {
    TestKeystore.create(folder, "k1");
    try (CloseableCatalog catalog = open(true, Map.of("io.manifest.cache-enabled", "true"))) {
      Backend.HIVE.empty(catalog.catalog);
      ((SupportsNamespaces) catalog.catalog).createNamespace(TestLake.DB);
      Table table = TestLake.append(TestLake.createTable(catalog.catalog, "cached", V3), 1);
      assertThat(TestLake.ids(table)).containsExactly(1L);
      CountingFileIO.reset();
      assertThat(TestLake.ids(table)).containsExactly(1L);
      assertThat(CountingFileIO.counts())
          .containsKey("open data")
          .doesNotContainKeys("open list", "open manifest");
      TestLake.append(table, 2);
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
      Backend.HIVE.empty(catalog.catalog);
    }
  }

  /** What each operation asked for, in its order. */
  private Map<String, Map<String, Integer>> run(boolean ours, String name) throws IOException {
    Map<String, Map<String, Integer>> asked = new LinkedHashMap<>();
    TableIdentifier id = TableIdentifier.of(TestLake.DB, name);
    try (CloseableCatalog first = open(ours)) {
      Table[] made = new Table[1];
      count(
          asked,
          "create and read the schema",
          () -> (made[0] = TestLake.createTable(first.catalog, name, V3)).schema());
      count(asked, "first append", () -> TestLake.append(made[0], 0));
    }

    try (CloseableCatalog session = open(ours);
        CloseableCatalog another = open(ours)) {
      Catalog catalog = session.catalog;
      count(asked, "load", () -> catalog.loadTable(id));
      count(
          asked,
          "load a metadata table",
          () -> catalog.loadTable(TableIdentifier.of(TestLake.DB.toString(), name, "partitions")));
      Table table = catalog.loadTable(id);
      count(asked, "append", () -> TestLake.append(table, 1));
      count(asked, "scan", () -> TestLake.ids(table));
      count(
          asked,
          "overwrite",
          () ->
              table
                  .newOverwrite()
                  .overwriteByRowFilter(Expressions.equal("id", 1L))
                  .addFile(TestLake.write(table, 2))
                  .commit());
      count(
          asked,
          "rewrite manifests",
          () -> table.rewriteManifests().clusterBy(file -> "").commit());
      TestLake.append(another.catalog.loadTable(id), 3);
      count(asked, "append after a conflict", () -> TestLake.append(table, 4));
      count(asked, "property", () -> table.updateProperties().set("a", "b").commit());
      String offsets = table.location() + "/offsets/0"; // as of a stream
      count(asked, "write a file without a key", () -> write(table.io(), offsets));
      count(asked, "read a file without a key", () -> read(table.io(), offsets));
      count(
          asked,
          "expire nothing",
          () -> table.expireSnapshots().expireOlderThan(1).retainLast(100).commit());
      count(asked, "purge", () -> catalog.dropTable(id, true));
    }

    return asked;
  }

  private static void write(FileIO io, String path) {
    try (OutputStream out = io.newOutputFile(path).create()) {
      out.write("{\"offset\": 1}".repeat(10).getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void read(FileIO io, String path) {
    try (SeekableInputStream in = io.newInputFile(path).newStream()) {
      assertThat(in.readAllBytes()).hasSize(130).startsWith('{').endsWith('}');
      in.seek(12);
      assertThat(in.readNBytes(60)).startsWith('}', '{').hasSize(60);
      assertThat(in.getPos()).isEqualTo(72);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void count(
      Map<String, Map<String, Integer>> asked, String step, Runnable operation) {
    CountingFileIO.reset();
    operation.run();
    asked.put(step, CountingFileIO.counts());
  }

  @Test
  void noMoreThanStockIcebergOnHive() throws IOException {
    TestKeystore.create(folder, "k1");
    try (CloseableCatalog catalog = open(false)) {
      Backend.HIVE.empty(catalog.catalog);
      ((SupportsNamespaces) catalog.catalog).createNamespace(TestLake.DB);
      Map<String, Map<String, Integer>> stock = run(false, "stock");
      Map<String, Map<String, Integer>> ours = run(true, "ours");
      Backend.HIVE.empty(catalog.catalog);
      assertThat(stock.get("append")).containsEntry("create manifest", 1);
      assertThat(ours.keySet()).isEqualTo(stock.keySet());
      ours.forEach(
          (step, counts) ->
              counts.forEach(
                  (what, count) ->
                      assertThat(count)
                          .as(step + ": " + what)
                          .isLessThanOrEqualTo(
                              stock.get(step).getOrDefault(what, 0)
                                  + (isOneMore(step, what) ? 1 : 0))));
    }
  }

  private static boolean isOneMore(String step, String what) {
    return what.equals("open data") && ADD_A_FILE.contains(step)
        || what.equals("open metadata") && step.equals("purge");
  }
}
