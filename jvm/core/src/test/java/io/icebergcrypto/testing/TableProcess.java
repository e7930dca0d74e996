package io.icebergcrypto.testing;

import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.audit.diagnosis.KeyEntry;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.HistoryEntry;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.hadoop.HadoopInputFile;
import org.apache.iceberg.io.InputFile;

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
   * each. rotate prints READY and rotates keys until it is killed. prepare and history are {@link
   * #prepare} and {@link #history}, which is printed.
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
      case "prepare" -> prepare(catalog);
      case "rotate" -> rotate(catalog);
      case "history" -> System.out.println(history(catalog));
      default -> throw new IllegalArgumentException(args[0]);
    }
  }

  /** Makes a table with a history: five commits, KEKs, a tag and a branch. */
  public static void prepare(EncryptedCatalog catalog) {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    for (int id = 0; id < 5; id++) {
      TestLake.append(table, id);
      if (id % 2 == 0) {
        KekRotation.run(catalog, T, false, false);
        table.refresh();
      }
    }

    table.manageSnapshots().createTag("tag", table.history().get(1).snapshotId()).commit();
    table.manageSnapshots().createBranch("b", table.history().get(2).snapshotId()).commit();
  }

  private static void rotate(EncryptedCatalog catalog) {
    System.out.println("READY");
    while (!System.out.checkError()) { // or until nobody listens
      MasterKeyRotation.run(catalog, T, otherKey(catalog), false);
      System.out.println("ROTATED the master key");
      KekRotation.run(catalog, T, true, false);
      System.out.println("ROTATED the KEK");
    }
  }

  /**
   * What a rotation must not change: refs, and the rows of each snapshot, in their order. Both
   * rotations are run first, as after a crash; all keys are in order then.
   */
  public static String history(EncryptedCatalog catalog) {
    KekRotation.run(catalog, T, true, false);
    MasterKeyRotation.run(catalog, T, null, false);
    List<KeyEntry> broken =
        EncryptionKeys.of(catalog, T).keys().stream().filter(key -> key.problem() != null).toList();
    if (!broken.isEmpty()) {
      throw new IllegalStateException("Keys with problems: " + broken);
    }

    Table table = catalog.loadTable(T);
    checkReachable(table);
    StringBuilder told = new StringBuilder(new TreeMap<>(table.refs()).toString());
    for (HistoryEntry entry : table.history()) {
      told.append(' ').append(entry.snapshotId());
      told.append(TestLake.ids(table, entry.snapshotId()));
    }

    return told.toString();
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

    for (String location : TestLake.locations(table)) {
      InputFile file = HadoopInputFile.fromLocation(location, new Configuration());
      if (!FileInspector.magic(file).encrypted()) {
        throw new IllegalStateException("Not encrypted: " + location);
      }
    }
  }
}
