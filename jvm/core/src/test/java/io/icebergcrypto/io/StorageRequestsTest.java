package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.CountingFileIO;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What operations ask of the storage: no more than stock Iceberg's encryption does, on Hive. */
class StorageRequestsTest {
  private static final Map<String, String> V3 = Map.of("format-version", "3");

  @TempDir Path folder;

  private record CloseableCatalog(Catalog catalog) implements Closeable {
    @Override
    public void close() throws IOException {
      ((Closeable) catalog).close();
    }
  }

  private CloseableCatalog open(boolean ours) throws IOException {
    Map<String, String> all =
        new HashMap<>(ours ? Backend.HIVE.encrypted(folder) : Backend.HIVE.properties(folder));
    all.putAll(TestKeystore.existing(folder).properties());
    all.put("io-impl", CountingFileIO.class.getName());
    if (!ours) {
      all.remove("encryption.kms-type");
      all.put("encryption.kms-impl", "io.icebergcrypto.kms.KeystoreKmsClient");
    }

    return new CloseableCatalog(
        CatalogUtil.buildIcebergCatalog("lake", all, Backend.HIVE.conf(folder)));
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
          () -> catalog.loadTable(TableIdentifier.of(TestLake.DB.toString(), name, "files")));
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
      count(
          asked,
          "expire nothing",
          () -> table.expireSnapshots().expireOlderThan(1).retainLast(100).commit());
    }

    return asked;
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
                          .isLessThanOrEqualTo(stock.get(step).getOrDefault(what, 0))));
    }
  }
}
