package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.catalog.EncryptedTable;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.ServerProcess;
import io.icebergcrypto.testing.Stub;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.LongStream;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.hive.HiveTableOperations;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Metadata that changes while it is read is not tampering; metadata that was changed is. */
class CheckedLoadTest {
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");
  private static final int WRITERS = 4;
  private static final int COMMITS = Integer.getInteger("iceberg.crypto.commits", 3);
  private static final String DIFFERS =
      "The current metadata file m might have been modified. Hash of metadata loaded from storage"
          + " differs from HMS-stored metadata hash.";

  @TempDir Path folder;

  @AfterEach
  void emptyTheSharedMetastore() throws IOException {
    try (HiveCatalog stock = new HiveCatalog()) {
      stock.setConf(Backend.HIVE.conf(folder));
      stock.initialize("lake", Backend.HIVE.properties(folder));
      Backend.HIVE.empty(stock);
    }
  }

  @Test
  void whatDiffersOnceIsLookedAtAgain() {
    assertThat(CheckedLoad.checked("t", looks(DIFFERS, DIFFERS, null))).isEqualTo("loaded");
  }

  @Test
  void whatKeepsDifferingIsTampered() {
    AtomicInteger looks = new AtomicInteger();
    long start = System.nanoTime();
    assertThatThrownBy(
            () ->
                CheckedLoad.checked(
                    "db.t",
                    () -> {
                      looks.incrementAndGet();
                      throw new RuntimeException(DIFFERS);
                    }))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("db.t", "might have been modified", "hint:");
    assertThat(looks).hasValue(6);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isBetween(ms(300), ms(2000));
  }

  @Test
  void otherErrorsAreNotTriedAgain() {
    assertThatThrownBy(() -> CheckedLoad.checked("t", looks("metastore is down", null)))
        .hasMessage("metastore is down");
    assertThatThrownBy(() -> CheckedLoad.checked("t", looks(DIFFERS, "down", null)))
        .hasMessage("down");
  }

  @Test
  void whoIsInterruptedLooksNoMore() {
    AtomicInteger looks = new AtomicInteger();
    Thread.currentThread().interrupt();
    try {
      assertThatThrownBy(
              () ->
                  CheckedLoad.checked(
                      "db.t",
                      () -> {
                        looks.incrementAndGet();
                        throw new RuntimeException(DIFFERS);
                      }))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("Interrupted before a second look")
          .hasRootCauseMessage(DIFFERS);
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
    assertThat(looks).hasValue(1);
  }

  @Test
  void sessionsUnderLoadSeeNoTampering() throws Exception {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    checkUnderLoad(Backend.HIVE.conf(folder));
  }

  @Test
  void sessionsUnderLoadSeeNoTamperingWithLocks() throws Exception {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    try (ServerProcess server = ServerProcess.metastore(folder)) {
      checkUnderLoad(server.metastoreConf());
    }
  }

  @Test
  void operationsRefreshUntilTheHashMatches() {
    List<String> calls = new ArrayList<>();
    AtomicInteger failures = new AtomicInteger(3);
    LoadedMetadata loaded = new LoadedMetadata(operations(calls, failures), "db.t");
    loaded.current();
    assertThat(calls).containsExactly("current", "refresh", "refresh", "refresh");

    failures.set(100);
    assertThatThrownBy(loaded::refresh).isInstanceOf(TamperedException.class);
    calls.clear();
    failures.set(0);
    loaded.current(); // never what the failed refresh read
    loaded.current();
    assertThat(calls).containsExactly("refresh", "current");
  }

  /** Operations whose next calls fail, so many times. */
  private static TableOperations operations(List<String> calls, AtomicInteger failures) {
    return Stub.of(
        TableOperations.class,
        (proxy, method, arguments) -> {
          calls.add(method.getName());
          if (failures.getAndDecrement() > 0) {
            throw new RuntimeException(DIFFERS);
          }

          return null;
        });
  }

  @Test
  void aChangedFileIsRefusedSoon() throws Exception {
    EncryptedCatalog catalog = open(Backend.HIVE.conf(folder));
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    Path file = TestLake.path(TestLake.metadata(table).metadataFileLocation());
    String genuine = Files.readString(file);
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    Files.writeString(
        file, genuine.replaceFirst("\"last-column-id\" ?: ?2", "\"last-column-id\":3"));
    assertThat(Files.readString(file)).isNotEqualTo(genuine);

    long start = System.nanoTime();
    assertThatThrownBy(() -> catalog.loadTable(T))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.t", file.getFileName().toString());
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(ms(3000));

    Files.writeString(file, genuine);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
    catalog.dropTable(T, true);
    catalog.close();
  }

  /** Iceberg loads the table nevertheless, so that a report has to tell. */
  @Test
  void withoutItsHashTheMetastoreVouchesForNothing() throws Exception {
    try (EncryptedCatalog catalog = open(Backend.HIVE.conf(folder))) {
      BaseTable table =
          (BaseTable) TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
      TableMetadata metadata = table.operations().current();
      assertThat(EncryptedTable.metadataAuthentication(table, metadata))
          .isEqualTo(
              new MetadataAuthentication(
                  true, "each load checks the hash that the Hive metastore has of it"));

      changeParameters(catalog, parameters -> parameters.remove("metadata_hash"));
      assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
      assertThat(EncryptedTable.metadataAuthentication(table, metadata))
          .isEqualTo(new MetadataAuthentication(false, "the Hive metastore has no hash of it"));
    }
  }

  /** Iceberg 1.10 changes the metadata's location and leaves its hash. */
  @Test
  void aCommitThatLeavesTheHashIsNamedAsACauseAndCostsNoData() throws Exception {
    try (EncryptedCatalog catalog = open(Backend.HIVE.conf(folder))) {
      BaseTable table =
          (BaseTable) TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
      Map<String, String> former = new HashMap<>();
      changeParameters(catalog, former::putAll);
      TestLake.append(table, 2);
      String left = former.get("metadata_hash");
      changeParameters(catalog, parameters -> parameters.put("metadata_hash", left));
      assertThatThrownBy(() -> catalog.loadTable(T))
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll("before 1.11", "previous_metadata_location", "metadata_hash");

      changeParameters(catalog, parameters -> parameters.remove("metadata_hash"));
      BaseTable kept = (BaseTable) TestLake.append(catalog.loadTable(T), 3);
      assertThat(TestLake.ids(kept)).containsExactlyInAnyOrder(1L, 2L, 3L);
      assertThat(EncryptedTable.metadataAuthentication(kept, TestLake.metadata(kept)))
          .matches(MetadataAuthentication::authenticated, "the commit has written the hash");
    }
  }

  private static void changeParameters(
      EncryptedCatalog catalog, Consumer<Map<String, String>> change) throws Exception {
    ((HiveTableOperations) ((HiveCatalog) catalog.delegate()).newTableOps(T))
        .metaClients()
        .run(
            client -> {
              var entry = client.getTable("db", "t");
              change.accept(entry.getParameters());
              client.alter_table("db", "t", entry);
              return null;
            });
  }

  /**
   * Sessions that commit, one of them other master keys too, one that loads all the time, and both
   * cores busy.
   */
  private void checkUnderLoad(Configuration conf) throws Exception {
    EncryptedCatalog catalog = open(conf);
    Table created = TestLake.createTable(catalog, "t", Map.of());
    AtomicBoolean ended = new AtomicBoolean();
    AtomicInteger mixed = new AtomicInteger();
    AtomicInteger loads = new AtomicInteger();
    ExecutorService threads = Executors.newCachedThreadPool();
    try {
      List<Future<?>> others = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        others.add(
            threads.submit(
                () -> {
                  for (long n = 0; !ended.get(); n++) {
                    Math.sqrt(n);
                  }
                }));
      }
      EncryptedCatalog reading = open(conf);
      others.add(
          threads.submit(
              () -> {
                while (!ended.get()) {
                  assertThat(reading.loadTable(T).uuid()).isEqualTo(created.uuid());
                  loads.incrementAndGet();
                  mixed.addAndGet(isMixed(reading) ? 1 : 0);
                }
                return null;
              }));
      List<Future<?>> writers = new ArrayList<>();
      for (int i = 0; i < WRITERS; i++) {
        writers.add(threads.submit(writer(conf, i * COMMITS)));
      }
      for (Future<?> writer : writers) {
        writer.get();
      }
      ended.set(true);
      for (Future<?> other : others) {
        other.get();
      }
    } finally {
      ended.set(true);
      threads.shutdownNow();
    }

    System.out.printf(
        "%d loads, name and hash of two commits in %d of as many%n", loads.get(), mixed.get());
    Table table = catalog.loadTable(T);
    assertThat(TestLake.ids(table))
        .containsExactlyElementsOf(LongStream.range(0, WRITERS * COMMITS).boxed().toList());
    assertThat(table.snapshots()).hasSize(WRITERS * COMMITS);
    assertThat(table.properties())
        .containsEntry("encryption.key-id", COMMITS % 2 == 0 ? "k1" : "k2");
    catalog.dropTable(T, true);
    catalog.close();
  }

  private Callable<Void> writer(Configuration conf, long first) {
    return () -> {
      EncryptedCatalog own = open(conf); // with a KMS client of its own
      Table table = own.loadTable(T);
      for (long id = first; id < first + COMMITS; id++) {
        TestLake.append(table, id);
        if (first == 0) {
          MasterKeyRotation.run(own, T, id % 2 == 0 ? "k2" : "k1", false);
        }
      }
      return null;
    };
  }

  /** One look, as Iceberg's own catalog does it. */
  private static boolean isMixed(EncryptedCatalog catalog) {
    try {
      catalog.delegate().loadTable(T);
      return false;
    } catch (RuntimeException e) {
      if (e.getMessage() != null && e.getMessage().contains("might have been modified")) {
        return true;
      }

      throw e;
    }
  }

  private EncryptedCatalog open(Configuration conf) throws IOException {
    Map<String, String> all = new HashMap<>(Backend.HIVE.encrypted(folder));
    all.putAll(
        Files.exists(folder.resolve("keys.p12"))
            ? TestKeystore.existing(folder).properties()
            : TestKeystore.create(folder, "k1", "k2").properties());
    return (EncryptedCatalog) CatalogUtil.buildIcebergCatalog("lake", all, conf);
  }

  /** Fails with each of these messages in turn, and loads at null. */
  private static Supplier<String> looks(String... messages) {
    Iterator<String> next = Arrays.asList(messages).iterator();
    return () -> {
      String message = next.next();
      if (message == null) {
        return "loaded";
      }

      throw new RuntimeException(message);
    };
  }

  private static Duration ms(int count) {
    return Duration.ofMillis(count);
  }
}
