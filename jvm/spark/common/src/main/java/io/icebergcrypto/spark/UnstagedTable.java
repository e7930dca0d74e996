package io.icebergcrypto.spark;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.ServerRefusal;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.spark.source.StagedSparkTable;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.Table;

/**
 * An encrypted table of CREATE ... AS SELECT where the catalog's server does not stage tables: it
 * is created first, empty and with its first KEK. A statement that fails drops it, unless its
 * commit may have been made.
 */
final class UnstagedTable extends StagedSparkTable {
  /** How a Spark version makes a table without staging it. */
  @FunctionalInterface
  interface Creation {
    Table create() throws TableAlreadyExistsException;
  }

  private final Runnable takeBack;
  private boolean mayHaveRows = false; // the server may make the commit later

  private UnstagedTable(org.apache.iceberg.Table made, Runnable takeBack) {
    super(made.newTransaction());
    this.takeBack = takeBack;
  }

  /**
   * Makes the table.
   *
   * @param creation makes it without staging
   * @param refusal why it was not staged; thrown again unless the server refused it
   */
  static StagedTable create(
      SparkCatalogBase catalog, Identifier ident, Creation creation, NotSupportedException refusal)
      throws TableAlreadyExistsException {
    if (!ServerRefusal.isOfStagedCreate(refusal)) {
      throw refusal;
    }

    org.apache.iceberg.Table made = ((SparkTable) creation.create()).table();
    TableMetadata asMade = ((HasTableOperations) made).operations().current();
    return new UnstagedTable(
        made,
        () -> {
          catalog.invalidateTable(ident);
          catalog
              .encryptedCatalog()
              .context()
              .behind()
              .takeBack(Spark3Util.identifierToTableIdentifier(ident), asMade);
        });
  }

  /** The same for a table that was to be replaced if it existed: it did not. */
  static StagedTable createOrReplace(
      SparkCatalogBase catalog,
      Identifier ident,
      Creation creation,
      NotSupportedException refusal) {
    try {
      return create(catalog, ident, creation, refusal);
    } catch (TableAlreadyExistsException e) {
      throw new CommitFailedException(e, "Table %s was created concurrently; try again", ident);
    }
  }

  @Override
  public void commitStagedChanges() {
    try {
      super.commitStagedChanges();
    } catch (CommitStateUnknownException e) {
      this.mayHaveRows = true;
      throw e;
    }
  }

  /** Spark calls it whatever the commit's error was. */
  @Override
  public void abortStagedChanges() {
    super.abortStagedChanges();
    if (!mayHaveRows) {
      takeBack.run();
    }
  }
}
