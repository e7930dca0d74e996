package io.icebergcrypto.integrity;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * How often authenticated metadata is turned into JSON and back: told by the memory that a commit
 * of large metadata takes, in bytes for each byte of it, as times vary.
 */
class SigningCostTest {
  private static final int LENGTH = 1_000_000;

  @TempDir Path folder;

  /** What a commit takes, and the load that follows. */
  private long perByte(String authentication) throws IOException {
    Map<String, String> all = new HashMap<>(TestKeystore.existing(folder).properties());
    all.put("encryption.metadata-authentication", authentication);
    TestLake lake = new TestLake(Backend.HADOOP, folder, all);
    Catalog catalog = lake.open(Map.of());
    Table table = TestLake.createTable(catalog, "t_" + authentication, Map.of());
    table.updateProperties().set("large", "x".repeat(LENGTH)).commit();
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 3; i++) {
      table.refresh();
      long before = threads.getCurrentThreadAllocatedBytes();
      table.updateProperties().set("small", "" + i).commit();
      table.refresh();
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }

    ((Closeable) catalog).close();
    return least / LENGTH;
  }

  @Test
  void aCommitTurnsTheMetadataToJsonTwice() throws IOException {
    TestKeystore.create(folder, "k1");
    long without = perByte("off");
    long with = perByte("require");
    assertThat(with - without).as("bytes for each byte of metadata").isBetween(1L, 48L);
  }
}
