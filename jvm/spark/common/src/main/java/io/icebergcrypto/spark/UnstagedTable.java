package io.icebergcrypto.spark;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.ServerRefusal;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.spark.Spark3Util;
import org.apache.iceberg.spark.source.SparkTable;
import org.apache.iceberg.spark.source.StagedSparkTable;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.TableInfo;

/**
 * An encrypted table of CREATE ... AS SELECT where the catalog's server stages none: it is there,
 * empty and with its first KEK, before the rows are. A statement that fails drops it.
 */
final class UnstagedTable extends StagedSparkTable {
  private final Runnable takeBack;

  private UnstagedTable(Table made, Runnable takeBack) {
    super(made.newTransaction());
    this.takeBack = takeBack;
  }

  /**
   * Makes the table.
   *
   * @param refusal why it was not staged; thrown again when that is not the server's doing
   */
  static StagedTable create(
      EncryptedSparkCatalog catalog,
      Identifier ident,
      TableInfo info,
      NotSupportedException refusal)
      throws TableAlreadyExistsException {
    if (!ServerRefusal.isOfStagedCreate(refusal)) {
      throw refusal;
    }

    Table made = ((SparkTable) catalog.createTable(ident, info)).table();
    TableMetadata asMade = ((HasTableOperations) made).operations().current();
    return new UnstagedTable(
        made,
        () -> {
          catalog.invalidateTable(ident);
          catalog
              .encryptedCatalog()
              .takeBack(Spark3Util.identifierToTableIdentifier(ident), asMade);
        });
  }

  /** The same where a table was to be replaced if there is one: there was none. */
  static StagedTable createOrReplace(
      EncryptedSparkCatalog catalog,
      Identifier ident,
      TableInfo info,
      NotSupportedException refusal) {
    try {
      return create(catalog, ident, info, refusal);
    } catch (TableAlreadyExistsException e) {
      throw new CommitFailedException(e, "Table %s was created concurrently; try again", ident);
    }
  }

  @Override
  public void abortStagedChanges() {
    super.abortStagedChanges();
    takeBack.run();
  }
}
