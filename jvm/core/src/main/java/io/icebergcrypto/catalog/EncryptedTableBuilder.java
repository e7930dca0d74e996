package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.catalog.behind.ServerRefusal;
import io.icebergcrypto.commit.CommitGuard;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.integrity.MetadataFolder;
import io.icebergcrypto.integrity.MetadataHash;
import io.icebergcrypto.kms.call.KmsCaller;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.Transactions;
import org.apache.iceberg.catalog.Catalog.TableBuilder;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * Creates and replaces tables. All that can be wrong with an encrypted table is found here, before
 * the catalog behind is asked and before a file is written: its properties, and whether its master
 * key can be used.
 */
final class EncryptedTableBuilder implements TableBuilder {
  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final TableBuilder delegate;
  private final Map<String, String> properties = new HashMap<>();
  private boolean askedNamespace;
  private NamespaceKeys.Default fromNamespace;

  EncryptedTableBuilder(
      EncryptedCatalog catalog, TableIdentifier identifier, TableBuilder delegate) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.delegate = delegate;
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
    delegate.withProperties(newProperties);
    if (newProperties != null) {
      properties.putAll(newProperties);
    }

    return this;
  }

  @Override
  public TableBuilder withProperty(String key, String value) {
    delegate.withProperty(key, value);
    properties.put(key, value);
    return this;
  }

  @Override
  public Table create() {
    takeNamespaceKey();
    String keyId = EncryptionProperties.keyId(catalog.propertiesOfNewTable(properties));
    if (keyId == null) {
      prepareNewTable();
      return catalog.decorate(checked(delegate::create), identifier);
    }

    // the catalog behind would do it past the operations that add the KEK and authenticate
    prepareNewTable();
    try {
      encryptedCreation(keyId, checked(delegate::createTransaction)).commitTransaction();
    } catch (CommitFailedException e) {
      throw new AlreadyExistsException(
          e, "Table was created concurrently: %s", tableName()); // as Iceberg's own builders say it
    } catch (RuntimeException e) {
      if (!ServerRefusal.is(e, catalog.delegate())) {
        throw e;
      }

      createAtOnce(keyId, e);
    }

    Table table = catalog.loadTable(identifier);
    checkKept(keyId, table.properties());
    return table;
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
      catalog.operations(ops, tableName()).addFirstKek();
    } catch (CommitStateUnknownException e) {
      throw e; // the KEK may be there, and the key id is
    } catch (RuntimeException e) {
      try {
        catalog.takeBack(identifier, asMade);
      } catch (RuntimeException e2) {
        e.addSuppressed(e2);
      }

      throw e;
    }
  }

  @Override
  public Transaction createTransaction() {
    String keyId = prepareNewTable();
    return encryptedCreation(keyId, created(keyId, delegate::createTransaction));
  }

  private Transaction encryptedCreation(String keyId, Transaction plain) {
    return encrypted(plain, keyId, Transactions::createTableTransaction, catalog.reporter());
  }

  /** A transaction that creates the table, where the server stages that. */
  private Transaction created(String keyId, Supplier<Transaction> create) {
    try {
      return checked(create);
    } catch (RuntimeException e) {
      throw keyId != null && ServerRefusal.is(e, catalog.delegate())
          ? ServerRefusal.ofStagedCreate(e).inTable(tableName())
          : e;
    }
  }

  @Override
  public Transaction replaceTransaction() {
    Table existing = existing();
    String keyId = existing == null ? null : prepareReplacement(existing);
    return encrypted(
        checked(delegate::replaceTransaction),
        keyId,
        Transactions::replaceTableTransaction,
        catalog.reporterOf(existing));
  }

  @Override
  public Transaction createOrReplaceTransaction() {
    Table existing = existing();
    String keyId = existing == null ? prepareNewTable() : prepareReplacement(existing);
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
        catalog.isRest() && existing == null
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
    EncryptedTableOperations ops = catalog.operations(transaction.underlyingOps(), tableName());
    Transaction made = factory.create(transaction.tableName(), ops, start, reporter);
    boolean creates = transaction.startMetadata() == null;
    return creates && keyId != null && catalog.kms().bindsTable()
        ? new EncryptedTransaction(underlying(made), ops, () -> checkUuid(ops, start.uuid()))
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
                    "the catalog's server gave it UUID %s, and its keys are bound to %s, which the"
                        + " server was asked for; the table was dropped again",
                    made.uuid(), uuid),
                String.format(
                    "Use a server that keeps the UUID (assign-uuid), or an encryption context or"
                        + " additional authenticated data without it. What was written is"
                        + " unreadable: delete what is left in %s.",
                    made.location()))
            .inTable(tableName());
    try {
      catalog.takeBack(identifier, made);
    } catch (RuntimeException e) {
      problem.addSuppressed(e);
    }

    throw problem;
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
                  "the catalog made it without %s='%s'", EncryptionProperties.KEY_ID, keyId),
              "The catalog's server drops or changes table properties: mend that; drop the table if"
                  + " it is there (it is empty) and create it again.")
          .inTable(tableName());
    }
  }

  /**
   * Checks the properties of a new table and the use of its master key.
   *
   * @return the key id, or null for a table that is not encrypted
   */
  private String prepareNewTable() {
    takeNamespaceKey();
    try {
      return preparedNewTable();
    } catch (IcebergCryptoException e) {
      throw withNamespace(e);
    }
  }

  private String preparedNewTable() {
    Map<String, String> all = catalog.propertiesOfNewTable(properties);
    PropertyNames.checkTable(tableName(), Map.of(), all);
    String keyId = EncryptionProperties.keyId(all);
    if (keyId == null) {
      refuseIfRequired(
          String.format(
              "Add TBLPROPERTIES ('%s'='<master key id>'), or set the namespace property %s or the"
                  + " catalog property table-default.%s.",
              EncryptionProperties.KEY_ID,
              EncryptionProperties.KEY_ID,
              EncryptionProperties.KEY_ID));
      refuseAnothersMetadata(all);
      return null;
    }

    EncryptionProperties.check(tableName(), Map.of(), all);
    catalog.allowedKeyIds().checkNew(tableName(), keyId);
    if (EncryptionProperties.needsFormatVersion(tableName(), all)) {
      delegate.withProperty(TableProperties.FORMAT_VERSION, "3");
    }

    try {
      catalog.checkMasterKey(tableName(), keyId);
      tryMasterKey(keyId);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName());
    }

    return keyId;
  }

  /**
   * Gives the table the key of its namespace, where the statement names none and the catalog does
   * not overrule all. Costs a call of the catalog behind, so that is all it is asked for.
   */
  private void takeNamespaceKey() {
    if (askedNamespace
        || properties.containsKey(EncryptionProperties.KEY_ID)
        || catalog
            .propertiesInForce()
            .containsKey(CatalogProperties.TABLE_OVERRIDE_PREFIX + EncryptionProperties.KEY_ID)) {
      return;
    }

    this.fromNamespace = catalog.namespaceKeys().of(identifier.namespace());
    this.askedNamespace = true;
    if (fromNamespace != null) {
      withProperty(EncryptionProperties.KEY_ID, fromNamespace.keyId());
    }
  }

  /** Says where the key id comes from, if not from the statement. */
  private IcebergCryptoException withNamespace(IcebergCryptoException e) {
    return fromNamespace == null
        ? e
        : e.withHint(
            String.format(
                "%s='%s' is a property of namespace %s.",
                EncryptionProperties.KEY_ID, fromNamespace.keyId(), fromNamespace.namespace()));
  }

  /** Properties copied from an encrypted table: commits of that one made them. */
  private void refuseAnothersMetadata(Map<String, String> all) {
    String folder = all.getOrDefault(TableProperties.WRITE_METADATA_LOCATION, "");
    String property =
        all.containsKey(EncryptionProperties.METADATA_MAC)
            ? EncryptionProperties.METADATA_MAC
            : TableProperties.WRITE_METADATA_LOCATION;
    if (all.containsKey(EncryptionProperties.METADATA_MAC)
        || MetadataFolder.uuid(folder + "/file") != null) {
      throw new InvalidConfigurationException(
              String.format(
                  "property %s is that of another, encrypted table, and this one has no %s",
                  property, EncryptionProperties.KEY_ID),
              String.format(
                  "Leave it out, or add '%s'='<master key id>'.", EncryptionProperties.KEY_ID))
          .inTable(tableName());
    }
  }

  private void refuseIfRequired(String hint) {
    if (catalog.encryptionRequired()) {
      throw EncryptionProperties.required(hint).inTable(tableName());
    }
  }

  /**
   * The table that is to be replaced, or null. Its properties say whether the new files are to be
   * encrypted: they must be genuine.
   */
  private Table existing() {
    try {
      Table table = checked(() -> catalog.delegate().loadTable(identifier));
      catalog.checkMetadata(table);
      if (table instanceof BaseTable base
          && EncryptionProperties.keyId(base.properties()) == null) {
        TableKeys.refuseLostKeyId(tableName(), base.operations().current(), null);
      }

      return table;
    } catch (NoSuchTableException e) {
      return null;
    }
  }

  /**
   * Checks the properties of a table's replacement. What the statement does not name stays as the
   * table has it, whatever the catalog's defaults for new tables are.
   *
   * @return the key id, or null for a table that is not encrypted
   */
  private String prepareReplacement(Table table) {
    Map<String, String> before = table.properties();
    if (EncryptionProperties.keyId(before) != null) {
      for (String property : EncryptionProperties.OF_TABLES) {
        String value = before.get(property);
        if (value != null && !properties.containsKey(property)) {
          withProperty(property, value);
        }
      }
    }

    takeNamespaceKey();
    Map<String, String> after = new HashMap<>(before);
    after.putAll(catalog.propertiesOfNewTable(properties));
    PropertyNames.checkTable(tableName(), before, after);
    try {
      CommitGuard.checkKeyId(tableName(), true, before, after);
    } catch (IcebergCryptoException e) {
      throw withNamespace(e);
    }

    String keyId = EncryptionProperties.keyId(after);
    if (keyId == null) {
      refuseIfRequired(
          String.format(
              "It was made without encryption. Make another one with TBLPROPERTIES"
                  + " ('%s'='<master key id>'), and drop this one.",
              EncryptionProperties.KEY_ID));
    } else {
      EncryptionProperties.check(tableName(), before, after);
      tryKey(table, keyId);
    }

    return keyId;
  }

  /**
   * Tries the key that the replacement's commit needs, before a file is written: Iceberg leaves the
   * manifests of a replacement that fails at its end. A KEK stays in the cache until then.
   */
  private void tryKey(Table table, String keyId) {
    TableMetadata metadata = ((HasTableOperations) table).operations().current();
    Optional<EncryptedKey> kek =
        metadata.encryptionKeys().stream()
            .filter(key -> keyId.equals(key.encryptedById()))
            .findFirst();
    try {
      if (kek.isPresent()) {
        ByteBuffer key =
            KmsCaller.forTable(
                tableName(),
                metadata.uuid(),
                () -> catalog.kms().unwrapKey(kek.get().encryptedKeyMetadata(), keyId));
        if (key.hasArray()) {
          Arrays.fill(key.array(), (byte) 0); // a copy
        }
      } else {
        tryMasterKey(keyId);
      }
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName());
    }
  }

  /** The catalog behind may load the table that is there. */
  private <T> T checked(Supplier<T> call) {
    return MetadataHash.checked(tableName(), call);
  }

  private void tryMasterKey(String keyId) {
    KmsCaller.forTable(
        tableName(),
        () -> {
          catalog.kms().check(keyId);
          return null;
        });
  }

  private String tableName() {
    return catalog.fullName(identifier);
  }
}
