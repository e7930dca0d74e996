package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.HotSpotDiagnosticMXBean;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What stays in memory when a catalog was closed and its tables are out of use. */
class ClosedCatalogTest {
  private static final byte MASK = 0x5a;

  @TempDir private Path folder;

  /**
   * No KEK. A DEK may be: Iceberg's reader of key metadata keeps what it read last in a buffer of
   * the thread.
   */
  @Test
  void noKekIsInTheHeap() throws Exception {
    List<byte[]> masked = new ArrayList<>(); // the test itself keeps keys under a mask only
    TestLake lake =
        new TestLake(Backend.JDBC, folder, TestKeystore.create(folder, "k1").properties());
    EncryptedCatalog catalog = lake.open(Map.of());
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1, 2);
    TestLake.append(table, 3);
    assertThat(TestLake.ids(table)).hasSize(3);
    collectKeks(catalog, table, masked);
    assertThat(masked).hasSize(1);
    assertThat(inHeap(folder.resolve("open.hprof"), masked)).isOne();
    catalog.close();
    catalog = null;
    table = null;
    assertThat(inHeap(folder.resolve("closed.hprof"), masked)).isZero();
  }

  private static void collectKeks(EncryptedCatalog catalog, Table table, List<byte[]> masked) {
    TableMetadata metadata = ((HasTableOperations) table).operations().current();
    for (EncryptedKey key : metadata.encryptionKeys()) {
      if ("k1".equals(key.encryptedById())) {
        masked.add(mask(catalog.context().kms().unwrapKey(key.encryptedKeyMetadata(), "k1")));
      }
    }
  }

  private static byte[] mask(ByteBuffer key) {
    byte[] masked = new byte[key.remaining()];
    for (int i = 0; i < masked.length; i++) {
      masked[i] = (byte) (key.get(key.position() + i) ^ MASK);
    }

    return masked;
  }

  /** Dumps what is alive in this JVM, and counts the keys in it. */
  private static int inHeap(Path dump, List<byte[]> masked) throws IOException {
    ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
        .dumpHeap(dump.toString(), true);
    byte[] heap = Files.readAllBytes(dump);
    Files.delete(dump);
    int found = 0;
    for (byte[] key : masked) {
      found += contains(heap, key) ? 1 : 0;
    }

    return found;
  }

  private static boolean contains(byte[] heap, byte[] masked) {
    for (int at = 0; at <= heap.length - masked.length; at++) {
      int i = 0;
      while (i < masked.length && (heap[at + i] ^ MASK) == masked[i]) {
        i++;
      }

      if (i == masked.length) {
        return true;
      }
    }

    return false;
  }
}
