package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.catalog.behind.ServerRefusal;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.metadata.CheckedLoad;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.Transactions;
import org.apache.iceberg.catalog.Catalog.TableBuilder;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * Creates and replaces tables, once {@link NewTable} has found nothing wrong. What the catalog
 * behind made is checked, too, and taken back when it is not what was asked for.
 */
final class EncryptedTableBuilder implements TableBuilder {
  private static final String DROPPED_AGAIN = "The table was dropped again.";

  private static final String NOT_DROPPED =
      "The table could not be dropped again, or another client has used it since: look at it before"
          + " you drop it.";

  private final CatalogContext catalog;
  private final TableIdentifier identifier;
  private final TableBuilder delegate;
  private final NewTable table;

  EncryptedTableBuilder(CatalogContext catalog, TableIdentifier identifier, TableBuilder delegate) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.delegate = delegate;
    this.table = new NewTable(catalog, identifier, delegate);
  }

  @Override
  public TableBuilder withPartitionSpec(PartitionSpec spec) {
    delegate.withPartitionSpec(spec);
    return this;
  }

  @Override
  public TableBuilder withSortOrder(SortOrder sortOrder) {
    delegate.withSortOrder(sortOrder);
    return this;
  }

  @Override
  public TableBuilder withLocation(String location) {
    delegate.withLocation(location);
    return this;
  }

  @Override
  public TableBuilder withProperties(Map<String, String> newProperties) {
    Map<String, String> own = NewTable.withoutAnothers(newProperties);
    delegate.withProperties(own);
    table.given(own);
    return this;
  }

  @Override
  public TableBuilder withProperty(String key, String value) {
    return withProperties(Map.of(key, value));
  }

  @Override
  public Table create() {
    String keyId = table.prepare();
    if (keyId == null) {
      return catalog.decorate(checked(delegate::create), identifier);
    }

    // the catalog behind would do it past the operations that add the KEK and authenticate
    try {
      BaseTransaction transaction = underlying(staged(keyId, delegate::createTransaction));
      try {
        encryptedCreation(keyId, transaction).commitTransaction();
      } catch (ServerRefusal.LostKeys e) {
        throw takenBack(transaction.underlyingOps().current(), e.ofNewTable());
      }

      return made(keyId, () -> ofTransaction(transaction));
    } catch (CommitFailedException e) {
      throw new AlreadyExistsException(
          e, "Table was created concurrently: %s", tableName()); // as Iceberg's own builders say it
    } catch (RuntimeException e) {
      if (!ServerRefusal.is(e, catalog.delegate())) {
        throw e;
      }

      createAtOnce(keyId, e);
      return made(keyId, () -> catalog.load(identifier));
    }
  }

  /**
   * The table that a transaction has created, with its operations: another load would read the
   * metadata again. A REST server may give a table other settings than a transaction.
   */
  private Table ofTransaction(BaseTransaction transaction) {
    return catalog.behind().isRest()
        ? catalog.load(identifier)
        : catalog.decorate(
            new BaseTable(transaction.underlyingOps(), tableName(), catalog.reporter()),
            identifier);
  }

  /**
   * The table that was created, once its metadata could be read.
   *
   * @throws CommitStateUnknownException when it cannot be loaded, although it was created
   */
  private Table made(String keyId, Supplier<Table> load) {
    try {
      Table made = load.get();
      checkKept(keyId, made.properties());
      return made;
    } catch (IcebergCryptoException e) {
      throw e; // which says what is wrong with it
    } catch (RuntimeException e) {
      throw new CommitStateUnknownException(
          new IcebergCryptoException(
                  "it was created, but cannot be loaded: " + e.getMessage(),
                  "Load it again. It need not be created again.",
                  e)
              .inTable(tableName()));
    }
  }

  /**
   * Creates a table where the server does not stage that: the table is there before its KEK is,
   * which then is the first commit. A crash in between leaves an empty table with its key id; the
   * next commit adds the KEK.
   *
   * @param refusal what the server said
   */
  private void createAtOnce(String keyId, RuntimeException refusal) {
    Table made;
    try {
      made = delegate.create();
    } catch (RuntimeException e) {
      e.addSuppressed(refusal);
      throw e;
    }

    TableOperations ops = ((HasTableOperations) made).operations();
    TableMetadata asMade = ops.current();
    try {
      checkKept(keyId, made.properties());
      checkFormat(keyId, asMade);
      catalog.operations(ops, tableName()).addFirstKek();
    } catch (ServerRefusal.LostKeys e) {
      throw takenBack(ops.current(), e.ofNewTable());
    } catch (CommitStateUnknownException e) {
      throw e; // the KEK may be there, and the key id is
    } catch (RuntimeException e) {
      throw takenBack(asMade, e);
    }
  }

  /** The error, with what became of the table that was made just now: it is to be dropped again. */
  private RuntimeException takenBack(TableMetadata asMade, RuntimeException error) {
    boolean dropped = false;
    try {
      dropped = catalog.behind().takeBack(identifier, asMade);
    } catch (RuntimeException e) {
      error.addSuppressed(e);
    }

    return error instanceof IcebergCryptoException known
        ? known.withHint(dropped ? DROPPED_AGAIN : NOT_DROPPED)
        : error;
  }

  @Override
  public Transaction createTransaction() {
    String keyId = table.prepare();
    return encryptedCreation(keyId, created(keyId, delegate::createTransaction));
  }

  private Transaction encryptedCreation(String keyId, Transaction plain) {
    return encrypted(plain, keyId, Transactions::createTableTransaction, catalog.reporter());
  }

  /** A transaction that creates the table, where the server takes the key id. */
  private Transaction staged(String keyId, Supplier<Transaction> create) {
    try {
      return checked(create);
    } catch (RuntimeException e) {
      throw keyId != null && ServerRefusal.isOfKeyId(e, catalog.delegate())
          ? ServerRefusal.ofKeyId(e).inTable(tableName())
          : e;
    }
  }

  /** A transaction that creates the table, where the server stages that, too. */
  private Transaction created(String keyId, Supplier<Transaction> create) {
    try {
      return staged(keyId, create);
    } catch (RuntimeException e) {
      throw keyId != null && ServerRefusal.is(e, catalog.delegate())
          ? ServerRefusal.ofStagedCreate(e).inTable(tableName())
          : e;
    }
  }

  @Override
  public Transaction replaceTransaction() {
    Table existing = table.existing();
    String keyId = existing == null ? null : table.prepareReplacement(existing);
    return encrypted(
        checked(delegate::replaceTransaction),
        keyId,
        Transactions::replaceTableTransaction,
        catalog.reporterOf(existing));
  }

  @Override
  public Transaction createOrReplaceTransaction() {
    Table existing = table.existing();
    String keyId = existing == null ? table.prepare() : table.prepareReplacement(existing);
    Transaction transaction =
        existing == null
            ? created(keyId, delegate::createOrReplaceTransaction)
            : checked(delegate::createOrReplaceTransaction);
    if ((existing == null) != (underlying(transaction).startMetadata() == null)) {
      throw new CommitFailedException(
          "Table %s was %s concurrently; try again",
          tableName(), existing == null ? "created" : "dropped");
    }

    // A REST catalog decides here and now which of the two it is; its create operations cannot be
    // retried as a replacement.
    return encrypted(
        transaction,
        keyId,
        catalog.behind().isRest() && existing == null
            ? Transactions::createTableTransaction
            : Transactions::createOrReplaceTableTransaction,
        catalog.reporterOf(existing));
  }

  /** One of the factory methods of {@link Transactions}. */
  private interface TransactionFactory {
    Transaction create(
        String name, TableOperations ops, TableMetadata start, MetricsReporter reporter);
  }

  /** The same transaction on operations that encrypt. Nothing has been written yet. */
  private Transaction encrypted(
      Transaction plain, String keyId, TransactionFactory factory, MetricsReporter reporter) {
    BaseTransaction transaction = underlying(plain);
    TableMetadata start = transaction.currentMetadata();
    checkKept(keyId, start.properties());
    checkFormat(keyId, start);
    EncryptedTableOperations ops = catalog.operations(transaction.underlyingOps(), tableName());
    Transaction made = factory.create(transaction.tableName(), ops, start, reporter);
    boolean creates = transaction.startMetadata() == null;
    return creates && keyId != null && catalog.kms().bindsTable()
        ? new EncryptedTransaction(
            underlying(made), ops, catalog.behind(), () -> checkUuid(ops, start.uuid()))
        : made;
  }

  /**
   * A server may give a new table another UUID than it was asked to: where keys are bound to that,
   * nobody could unwrap those of this table. It is taken back.
   */
  private void checkUuid(EncryptedTableOperations ops, String uuid) {
    TableMetadata made = ops.unchecked();
    if (made == null || uuid.equals(made.uuid())) {
      return;
    }

    IcebergCryptoException problem =
        new NotSupportedException(
                String.format(
                    "the catalog's server gave it UUID %s, but its keys are bound to %s, the one"
                        + " requested",
                    made.uuid(), uuid),
                String.format(
                    "Use a server that keeps the UUID (assign-uuid), or an encryption context or"
                        + " additional authenticated data without it. What this statement wrote to"
                        + " %s cannot be read: delete that, and nothing else there.",
                    made.location()))
            .inTable(tableName());
    throw takenBack(made, problem);
  }

  private static BaseTransaction underlying(Transaction transaction) {
    if (transaction instanceof BaseTransaction base) {
      return base;
    }

    throw new IllegalStateException(
        "Cannot encrypt a transaction of class " + transaction.getClass().getName());
  }

  /** A server may drop or change properties: without the key id the table would be plaintext. */
  private void checkKept(String keyId, Map<String, String> tableProperties) {
    if (keyId != null && !keyId.equals(EncryptionProperties.keyId(tableProperties))) {
      throw new PlaintextException(
              String.format(
                  "the catalog created it without %s='%s'", EncryptionProperties.KEY_ID, keyId),
              "The catalog's server drops or changes table properties: fix that, and create the"
                  + " table again. What this statement left there has no rows.")
          .inTable(tableName());
    }
  }

  /** A server may know no newer format version than 2, which has no place for keys. */
  private void checkFormat(String keyId, TableMetadata made) {
    if (keyId != null) {
      EncryptionProperties.checkMadeWith(tableName(), made.formatVersion());
    }
  }

  /** The catalog behind may load the table that is there. */
  private <T> T checked(Supplier<T> call) {
    return CheckedLoad.checked(tableName(), call);
  }

  private String tableName() {
    return catalog.fullName(identifier);
  }
}
