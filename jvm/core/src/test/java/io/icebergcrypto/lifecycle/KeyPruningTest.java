package io.icebergcrypto.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Keys that stock Iceberg leaves, and that go. On Hive, the one catalog where it writes them; what
 * may go is tested on all catalogs, by {@code KeyRetentionTest} and the histories of tests/twin.
 */
@ParameterizedClass
@EnumSource(names = "HIVE")
class KeyPruningTest extends LakeFixture {
  /** {@code make soak} has 500. */
  private static final int COMMITS =
      Integer.getInteger("iceberg.crypto.expired-commits", NIGHTLY ? 25 : 15);

  private static final int PERIOD = COMMITS / 5;

  /** A table whose metadata holds nothing else that grows. */
  private Table create() {
    Map<String, String> oneFile = Map.of("write.metadata.previous-versions-max", "1");
    Table table = TestLake.append(TestLake.createTable(catalog, "t", oneFile), 0);
    return table;
  }

  /** Commits, expired to the last one from time to time: the metadata's size after each expiry. */
  private static int[] sizes(Table table) {
    int[] sizes = new int[COMMITS / PERIOD];
    for (int i = 0; i < COMMITS; i++) {
      table.newFastAppend().commit();
      if ((i + 1) % PERIOD == 0) {
        TestLake.expire(table);
        sizes[i / PERIOD] = size(TestLake.metadata(table));
      }
    }

    return sizes;
  }

  private static int size(TableMetadata metadata) {
    return TableMetadataParser.toJson(metadata).length();
  }

  private static int keys(Table table) {
    table.refresh();
    return TestLake.metadata(table).encryptionKeys().size();
  }

  private KeyPruning prune(boolean dryRun) {
    return KeyPruning.run(catalog, T, dryRun);
  }

  @Test
  void metadataOfStockIcebergGrowsAndIsPruned() throws IOException {
    Table table = create();
    int flat = size(TestLake.metadata(table)) + 500; // of the last expiry's snapshot and log
    Catalog stock = lake.openStockWithKeys();
    Table old = stock.loadTable(T);
    int[] sizes = sizes(old);
    assertThat(sizes[sizes.length - 1]).as("control").isGreaterThan(flat + 150 * COMMITS);
    assertThat(keys(table)).isEqualTo(COMMITS + 2);

    String before = TestLake.metadata(table).metadataFileLocation();
    KeyPruning dry = prune(true);
    assertThat(dry.message())
        .startsWith(COMMITS + " of " + (COMMITS + 2) + " keys would go: the metadata would have ")
        .endsWith("; nothing was changed");
    table.refresh();
    assertThat(TestLake.metadata(table).metadataFileLocation()).isEqualTo(before);

    Transaction open = old.newTransaction();
    open.newFastAppend().commit();
    KeyPruning done = prune(false);
    assertThat(done.toMap())
        .containsEntry("table", "lake.db.t")
        .containsEntry("keys_before", COMMITS + 2)
        .containsEntry("removed", COMMITS)
        .containsEntry("kept", 2)
        .containsEntry("committed", true);
    assertThat(done.bytesBefore()).isEqualTo(sizes[sizes.length - 1]);
    assertThat(done.bytesAfter()).isEqualTo(dry.bytesAfter()).isLessThan(flat);
    assertThat(keys(table)).isEqualTo(2);
    assertThat(size(TestLake.metadata(table))).isLessThan(flat);
    assertThat(TestLake.ids(lake.openStockWithKeys().loadTable(T))).containsExactly(0L);

    open.commitTransaction(); // it began before
    assertThat(prune(false).kept()).isEqualTo(3);
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      TableProcess.checkReachable(fresh.loadTable(T));
      assertThat(TestLake.ids(fresh.loadTable(T))).containsExactly(0L);
    }

    ((Closeable) stock).close();
  }

  @Test
  void metadataOfOursStaysFlat() {
    Table table = create();
    int[] sizes = sizes(table);
    assertThat(sizes[sizes.length - 1]).isBetween(sizes[0] - 50, sizes[0] + 50);
    String before = TestLake.metadata(table).metadataFileLocation();
    KeyPruning done = prune(false);
    assertThat(done.committed()).isFalse();
    assertThat(done.message()).isEqualTo("nothing to remove: 2 keys are needed");
    table.refresh();
    assertThat(TestLake.metadata(table).metadataFileLocation()).isEqualTo(before);
  }

  @Test
  void aTableWithoutKeysIsRefused() {
    TableIdentifier plain = TableIdentifier.of(TestLake.DB, "plain");
    catalog.createTable(plain, TestLake.SCHEMA);
    assertThatThrownBy(() -> KeyPruning.run(catalog, plain, false))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.plain", "is not encrypted");
  }
}
