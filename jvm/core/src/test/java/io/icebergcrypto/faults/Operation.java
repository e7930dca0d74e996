package io.icebergcrypto.faults;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import io.icebergcrypto.testing.TestLake;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;

/** What {@link EveryCallTest} does to a table with the rows 1, 2 and 3, in a snapshot each. */
enum Operation {
  APPEND(List.of(1L, 2L, 3L, 9L)) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      TestLake.append(catalog.loadTable(name), 9);
    }
  },

  DELETE(List.of(1L, 3L)) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      catalog.loadTable(name).newDelete().deleteFromRowFilter(Expressions.equal("id", 2)).commit();
    }
  },

  OVERWRITE(List.of(1L, 3L, 9L)) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      Table table = catalog.loadTable(name);
      DataFile added = TestLake.write(table, 9);
      table.newOverwrite().overwriteByRowFilter(Expressions.equal("id", 2)).addFile(added).commit();
    }
  },

  EXPIRE(Operation.rows()) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      catalog
          .loadTable(name)
          .expireSnapshots()
          .expireOlderThan(Long.MAX_VALUE)
          .retainLast(1)
          .commit();
    }
  },

  REWRITE_MANIFESTS(Operation.rows()) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      catalog.loadTable(name).rewriteManifests().clusterBy(file -> "all").commit();
    }
  },

  TRANSACTION(List.of(1L, 3L, 9L)) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      Table table = catalog.loadTable(name);
      DataFile added = TestLake.write(table, 9);
      Transaction both = table.newTransaction();
      both.newDelete().deleteFromRowFilter(Expressions.equal("id", 2)).commit();
      both.newAppend().appendFile(added).commit();
      both.commitTransaction();
    }
  },

  REPLACE(List.of(9L)) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      Transaction replaced =
          catalog
              .buildTable(name, TestLake.SCHEMA)
              .withProperty("encryption.key-id", "k1")
              .replaceTransaction();
      DataFile added = TestLake.write(replaced.table(), 9);
      replaced.newAppend().appendFile(added).commit();
      replaced.commitTransaction();
    }
  },

  CREATE(List.of(9L)) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      Transaction created =
          catalog
              .buildTable(name, TestLake.SCHEMA)
              .withProperty("encryption.key-id", "k1")
              .createTransaction();
      DataFile added = TestLake.write(created.table(), 9);
      created.newAppend().appendFile(added).commit();
      created.commitTransaction();
    }
  },

  PROPERTIES(Operation.rows()) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      catalog.loadTable(name).updateProperties().set("some", "thing").commit();
    }
  },

  ROTATE_KEK(Operation.rows()) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      KekRotation.run(catalog, name, true, false);
    }
  },

  ROTATE_MASTER_KEY(Operation.rows()) {
    @Override
    void run(EncryptedCatalog catalog, TableIdentifier name) {
      MasterKeyRotation.run(catalog, name, "k2", false);
    }
  };

  private final List<Long> after;

  Operation(List<Long> after) {
    this.after = after;
  }

  private static List<Long> rows() {
    return List.of(1L, 2L, 3L);
  }

  /** The rows that the table has then. */
  List<Long> after() {
    return after;
  }

  boolean creates() {
    return this == CREATE;
  }

  /** Loads the table, and does it. */
  abstract void run(EncryptedCatalog catalog, TableIdentifier name);

  /** The table has three rows before. */
  static Table table(EncryptedCatalog catalog, String name) {
    Table table =
        TestLake.createTable(
            catalog,
            name,
            Map.of("commit.retry.num-retries", "2", "commit.retry.max-wait-ms", "20"));
    TestLake.append(table, 1);
    TestLake.append(table, 2);
    TestLake.append(table, 3);
    return table;
  }
}
