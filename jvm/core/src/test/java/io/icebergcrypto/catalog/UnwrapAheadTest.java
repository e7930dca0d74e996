package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.PlainKms;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.BatchScan;
import org.apache.iceberg.ScanTask;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.CloseableIterable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The tables of a join wait for the KMS at the same time. */
class UnwrapAheadTest {
  private static final List<String> TABLES = List.of("a", "b", "c");
  // as Hive and REST: without authentication, nothing is unwrapped when a table is loaded
  private static final Map<String, String> UNSIGNED =
      Map.of(
          "encryption.metadata-authentication",
          "off",
          "encryption.kms-impl",
          Meeting.class.getName());

  @TempDir Path folder;

  /** A double of a KMS that answers no unwrap until as many are under way as a test says. */
  public static final class Meeting extends PlainKms {
    private static final long serialVersionUID = 1L;

    static final AtomicInteger CALLS = new AtomicInteger();
    static volatile CountDownLatch all = new CountDownLatch(0);

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
      CALLS.incrementAndGet();
      CountDownLatch here = all;
      here.countDown();
      try {
        if (!here.await(20, TimeUnit.SECONDS)) {
          throw new IllegalStateException("the others did not come");
        }
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }

      return super.unwrapKey(wrappedKey, wrappingKeyId);
    }
  }

  private TestLake lake() throws IOException {
    TestLake lake = new TestLake(Backend.JDBC, folder, UNSIGNED);
    try (EncryptedCatalog catalog = lake.open(Map.of())) {
      for (String name : TABLES) {
        TestLake.append(TestLake.createTable(catalog, name, Map.of()), 1);
      }
    }

    Meeting.CALLS.set(0);
    return lake;
  }

  private static Table load(EncryptedCatalog catalog, String name) {
    return catalog.loadTable(TableIdentifier.of(TestLake.DB, name));
  }

  /** What is asked of a table before its scan is planned: Spark asks the second. */
  private static List<Consumer<BaseTable>> beginnings() {
    return List.of(BaseTable::newBatchScan, BaseTable::allowDistributedPlanning);
  }

  @ParameterizedTest
  @MethodSource("beginnings")
  void scansThatWereBegunUnwrapTheirKeysAtTheSameTime(Consumer<BaseTable> begin)
      throws IOException {
    TestLake lake = lake();
    Meeting.all = new CountDownLatch(TABLES.size());
    try (EncryptedCatalog catalog = lake.open(Map.of())) {
      List<Table> tables = TABLES.stream().map(name -> load(catalog, name)).toList();
      tables.forEach(table -> begin.accept((BaseTable) table));
      for (Table table : tables) { // one after another, as Spark plans them
        try (CloseableIterable<ScanTask> tasks = table.newBatchScan().planFiles()) {
          assertThat(tasks).hasSize(1);
        }
      }

      assertThat(Meeting.CALLS).as("each key once").hasValue(TABLES.size());
    }
  }

  @Test
  void nothingIsUnwrappedTwiceWhereNoKeyIsKept() throws IOException {
    TestLake lake = lake();
    try (EncryptedCatalog catalog = lake.open(Map.of("encryption.kms.cache.ttl-ms", "0"))) {
      assertThat(TestLake.ids(load(catalog, "a"))).containsExactly(1L);
      assertThat(Meeting.CALLS).hasValue(1);
    }
  }

  @Test
  void anErrorIsToldByWhoNeedsTheKey() throws IOException {
    TestLake lake = lake();
    Meeting.all =
        new CountDownLatch(1) {
          @Override
          public void countDown() {
            throw new IllegalStateException("no such key");
          }
        };
    try (EncryptedCatalog catalog = lake.open(Map.of())) {
      BatchScan scan = load(catalog, "a").newBatchScan();
      assertThatThrownBy(scan::planFiles).hasStackTraceContaining("no such key");
    } finally {
      Meeting.all = new CountDownLatch(0);
    }
  }
}
