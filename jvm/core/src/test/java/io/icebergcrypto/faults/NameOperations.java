package io.icebergcrypto.faults;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.faults.Operation.Trait;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.TestLake;
import java.util.List;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog.TableBuilder;
import org.apache.iceberg.catalog.TableIdentifier;

/** Operations by which tables come, go, and get another name. */
final class NameOperations {
  private NameOperations() {}

  private static TableBuilder builder(EncryptedCatalog catalog, TableIdentifier name) {
    return catalog
        .buildTable(name, TestLake.SCHEMA)
        .withProperties(Operation.FEW_RETRIES)
        .withProperty("encryption.key-id", "k1");
  }

  private static void commitWithRow(Transaction transaction) {
    DataFile added = TestLake.write(transaction.table(), 9);
    transaction.newAppend().appendFile(added).commit();
    transaction.commitTransaction();
  }

  private static Operation.Step nothing(
      EncryptedCatalog catalog, TableIdentifier name, TestLake lake) {
    return (fresh, same) -> {};
  }

  /** Another client makes the table. */
  private static Operation other() {
    return Operation.of(
        "CREATE_OTHER",
        rows -> rows == null ? List.of(7L) : rows,
        (catalog, name) -> {
          Transaction created = builder(catalog, name).createTransaction();
          created.newAppend().appendFile(TestLake.write(created.table(), 7)).commit();
          created.commitTransaction();
        });
  }

  private static TableIdentifier source(TableIdentifier name) {
    return TableIdentifier.of(name.namespace(), name.name() + "_source");
  }

  static List<Operation> all() {
    return List.of(
        Operation.of(
                "CREATE",
                rows -> rows == null ? List.of(9L) : rows,
                (catalog, name) -> commitWithRow(builder(catalog, name).createTransaction()))
            .preparedBy(NameOperations::nothing)
            .beside(other()),
        Operation.of(
                "CREATE_EMPTY",
                rows -> rows == null ? List.of() : rows,
                (catalog, name) -> builder(catalog, name).create())
            .preparedBy(NameOperations::nothing)
            .beside(other()),
        Operation.of(
            "REPLACE",
            rows -> rows == null ? null : List.of(9L),
            (catalog, name) -> commitWithRow(builder(catalog, name).replaceTransaction())),
        Operation.of(
            "CREATE_OR_REPLACE",
            rows -> List.of(9L),
            (catalog, name) -> commitWithRow(builder(catalog, name).createOrReplaceTransaction())),
        Operation.of(
                "CREATE_OR_REPLACE_NEW",
                rows -> List.of(9L),
                (catalog, name) ->
                    commitWithRow(builder(catalog, name).createOrReplaceTransaction()))
            .preparedBy(NameOperations::nothing)
            .beside(other()),
        Operation.of(
                "RENAME", rows -> rows, (catalog, name) -> catalog.renameTable(source(name), name))
            .preparedBy((catalog, name, lake) -> Operation.rows(catalog, source(name)))
            .doneWhen((catalog, name) -> catalog.tableExists(name))
            .from(NameOperations::source)
            .that(Trait.MAY_BE_DENIED)
            .notOn(Backend.HADOOP),
        Operation.of("DROP", rows -> null, (catalog, name) -> catalog.dropTable(name, false))
            .that(Trait.MAY_BE_DENIED, Trait.FORGETS),
        Operation.of("PURGE", rows -> null, (catalog, name) -> catalog.dropTable(name, true))
            .that(Trait.MAY_BE_DENIED, Trait.FORGETS),
        Operation.of(
                "REGISTER",
                rows -> rows == null ? Operation.BEFORE : rows,
                (catalog, name) ->
                    catalog.registerTable(
                        name,
                        TestLake.metadata(catalog.loadTable(source(name))).metadataFileLocation()))
            .preparedBy((catalog, name, lake) -> Operation.rows(catalog, source(name)))
            .that(Trait.MAY_BE_DENIED)
            .notOn(Backend.HADOOP) // which copies the file, and signs the copy after that
            .beside(other()));
  }
}
