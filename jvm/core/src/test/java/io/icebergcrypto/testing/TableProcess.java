package io.icebergcrypto.testing;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;

/** A process of its own that works on the encrypted table db.t. */
public final class TableProcess {
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");

  private TableProcess() {}

  /**
   * Arguments: what to do, backend, folder, and for write the first id.
   *
   * <p>check reads all that there is, adds a row and prints ROW id for each row. write does the
   * same on a table that it makes if the first id is 0, then appends rows, with rotations of keys
   * in between, until it is killed; it prints READY before the first commit and COMMITTED id behind
   * each.
   */
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[2]);
    TestLake lake =
        new TestLake(Backend.valueOf(args[1]), folder, TestKeystore.existing(folder).properties());
    EncryptedCatalog catalog = lake.open(Map.of());
    switch (args[0]) {
      case "check" -> check(catalog.loadTable(T));
      case "write" -> {
        long first = Long.parseLong(args[3]);
        Table table =
            first == 0 ? TestLake.createTable(catalog, "t", Map.of()) : catalog.loadTable(T);
        check(table);
        write(catalog, table, first);
      }
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  private static void write(EncryptedCatalog catalog, Table table, long first) {
    System.out.println("READY");
    for (long id = first; !System.out.checkError(); id++) { // or until nobody listens
      TestLake.append(table, id);
      System.out.println("COMMITTED " + id);
      switch ((int) (id % 6)) {
        case 2 -> KekRotation.run(catalog, T, true, false);
        case 5 -> MasterKeyRotation.run(catalog, T, otherKey(catalog), false);
        default -> {}
      }
    }
  }

  private static String otherKey(EncryptedCatalog catalog) {
    String keyId = catalog.loadTable(T).properties().get("encryption.key-id");
    return keyId.equals("k1") ? "k2" : "k1";
  }

  private static void check(Table table) {
    checkReachable(table);
    Set<Long> before = TestLake.ids(table);
    TestLake.append(table, -1L - before.size());
    Set<Long> after = TestLake.ids(table);
    if (after.size() != before.size() + 1) {
      throw new IllegalStateException(before.size() + " rows, then " + after.size());
    }

    after.forEach(id -> System.out.println("ROW " + id));
  }

  /** Every snapshot's key is there, and all that snapshots reach is encrypted and can be read. */
  public static void checkReachable(Table table) {
    TableMetadata metadata = TestLake.metadata(table);
    Set<String> keys =
        Set.copyOf(metadata.encryptionKeys().stream().map(EncryptedKey::keyId).toList());
    for (Snapshot snapshot : table.snapshots()) {
      if (!keys.contains(snapshot.keyId())) {
        throw new IllegalStateException("Snapshot without its key: " + snapshot);
      }

      for (ManifestFile manifest : snapshot.allManifests(table.io())) {
        if (manifest.keyMetadata() == null) {
          throw new IllegalStateException("Manifest without its key: " + manifest.path());
        }
      }
    }

    TestLake.reachable(table)
        .forEach(
            path -> {
              if (!TestLake.magic(path).encrypted()) {
                throw new IllegalStateException("Not encrypted: " + path);
              }
            });
  }
}
