package io.icebergcrypto.catalog;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.cleanup.ManifestListCheck;
import io.icebergcrypto.cleanup.Purge;
import io.icebergcrypto.cleanup.PurgeResult;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.integrity.SigningKeys;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.metadata.CheckedLoad;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.MetadataTableUtils;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * What the tables of one catalog share, how they are made of those of the catalog behind, and what
 * only this project's own operations do with them: audits, which look past a load's checks, and
 * commits that no other client makes.
 *
 * @param name the name that the catalog was given
 * @param settings what its properties say
 * @param behind the catalog behind
 * @param kmsOrNull the one KMS client; null when the catalog names no KMS
 * @param managers makes the encryption managers of tables
 * @param reporter the metrics reporter of tables that are being created
 */
public record CatalogContext(
    String name,
    CatalogSettings settings,
    CatalogBehind behind,
    CachingKmsClient kmsOrNull,
    EncryptionManagerFactory managers,
    MetricsReporter reporter) {
  /**
   * Makes the context of one catalog.
   *
   * @throws InvalidConfigurationException when the settings do not fit the catalog behind
   */
  public CatalogContext {
    behind.authenticatesMetadata(settings); // or refuses them
  }

  /** Whether the metadata of encrypted tables is authenticated. */
  public boolean authenticatesMetadata() {
    return behind.authenticatesMetadata(settings);
  }

  /** The catalog behind. */
  Catalog delegate() {
    return behind.catalog();
  }

  /**
   * The KMS client that all tables of this catalog share.
   *
   * @throws InvalidConfigurationException when the catalog names no KMS
   */
  public CachingKmsClient kms() {
    if (kmsOrNull == null) {
      throw KmsClients.notConfigured().inCatalog(name);
    }

    return kmsOrNull;
  }

  /** The master keys that its tables may name, and that may sign reports on them. */
  public AllowedKeyIds allowedKeyIds() {
    return settings.allowedKeyIds();
  }

  /** The master keys that namespaces give to new tables. */
  public NamespaceKeys namespaceKeys() {
    return new NamespaceKeys(this);
  }

  /** Tables of other formats that an engine keeps under the same names. */
  public OtherTables otherTables() {
    return new OtherTables(this);
  }

  /** The properties that a new table gets, with the catalog's defaults and overrides. */
  Map<String, String> propertiesOfNewTable(Map<String, String> own) {
    return EncryptionProperties.ofNewTable(behind.properties(), own);
  }

  /**
   * Whether a new table would be encrypted, or would have to be.
   *
   * @param namespace the one that the table is to be in
   * @param own the table properties that the statement gives
   */
  public boolean encryptsNewTable(Namespace namespace, Map<String, String> own) {
    return settings.encryptionRequired()
        || EncryptionProperties.keyId(propertiesOfNewTable(own)) != null
        || namespaceKeys().of(namespace) != null;
  }

  /** A table's name with that of this catalog. */
  public String fullName(TableIdentifier identifier) {
    return SqlNames.full(name, identifier);
  }

  /**
   * The metrics reporter that the catalog behind gave a table, which may be null: not there yet.
   */
  MetricsReporter reporterOf(Table table) {
    return table instanceof BaseTable base ? base.reporter() : reporter;
  }

  /** A table's operations in the catalog behind, with encryption added. */
  EncryptedTableOperations operations(TableOperations ops, String table) {
    return operations(ops, new TableKeys(table, managers, this::kms));
  }

  private EncryptedTableOperations operations(TableOperations ops, TableKeys keys) {
    String table = keys.tableName();
    return new EncryptedTableOperations(
        ops, keys, authenticator(table, ops, this::kms), settings, behind, this::kms, false);
  }

  /**
   * The operations of a table whose metadata another KMS may vouch for than this catalog's: that
   * from before a move to this one. Commits are signed with this catalog's.
   *
   * @param table one of {@link #unchecked}
   * @param checks unwraps the KEKs of metadata that is checked
   */
  public TableOperations operations(BaseTable table, KeyManagementClient checks) {
    TableOperations ops = table.operations();
    return operations(ops, table.name()).checkedBy(authenticator(table.name(), ops, () -> checks));
  }

  /**
   * A table of metadata that is not in the catalog, with this one's encryption: such as that of a
   * table to be encrypted, before it is committed. Files that it adds are verified by its caller.
   *
   * @param ops operations that keep the metadata, and read and write plain files
   * @param table the table's full name
   */
  public BaseTable uncommitted(TableOperations ops, String table) {
    EncryptedTableOperations operations =
        new EncryptedTableOperations(
            ops,
            new TableKeys(table, managers, this::kms),
            MetadataAuthenticator.off(
                () -> new MetadataAuthentication(false, "the metadata is not committed yet")),
            settings,
            behind,
            this::kms,
            true);
    return new EncryptedTable(operations, new BaseTable(ops, table, reporter), table, behind);
  }

  private MetadataAuthenticator authenticator(
      String table, TableOperations ops, Supplier<? extends KeyManagementClient> client) {
    return authenticatesMetadata()
        ? MetadataAuthenticator.of(table, ops, behind.isHadoop(), client, behind.setOnLoad())
        : MetadataAuthenticator.off(() -> behind.withoutAuthentication(ops));
  }

  /**
   * Checks a table of the catalog behind as a load does: its key id, and metadata that is
   * authenticated.
   *
   * @return whether the metadata is authenticated
   * @throws IcebergCryptoException as a load does
   */
  public MetadataAuthentication checkMetadata(BaseTable table) {
    return checkMetadata(table, this::kms);
  }

  /** The same, with keys from another client, if one is needed. */
  public MetadataAuthentication checkMetadata(
      BaseTable table, Supplier<? extends KeyManagementClient> client) {
    TableMetadata metadata = table.operations().current();
    LoadSteps load = load(table.name(), table.operations(), client);
    load.checkGenuine(metadata);
    return load.authenticator().status(metadata);
  }

  private LoadSteps load(
      String table, TableOperations ops, Supplier<? extends KeyManagementClient> client) {
    return new LoadSteps(table, settings, authenticator(table, ops, client));
  }

  /** Checks the metadata of a file that is to become a table's, as that of a table. */
  void checkMetadata(TableIdentifier identifier, MetadataFile file) {
    load(fullName(identifier), null, this::kms).check(file);
  }

  /**
   * Signs the metadata of a table's copy, where this catalog authenticates metadata.
   *
   * @param file where the copy's metadata file will be
   * @return the metadata with a MAC; the same where metadata is not authenticated
   */
  public TableMetadata signedFor(BaseTable table, String file, TableMetadata metadata) {
    return authenticator(table.name(), table.operations(), this::kms).signFor(file, metadata);
  }

  /**
   * Checks that a table may have a master key, before the KMS is asked for it.
   *
   * @throws AccessDeniedException when this catalog does not allow it
   * @throws InvalidConfigurationException when anyone other than its users can wrap with it, and
   *     the metadata is authenticated
   */
  public void checkMasterKey(String table, String keyId) {
    try {
      checkOwn(keyId);
    } catch (IcebergCryptoException e) {
      throw e.inTable(table);
    }
  }

  /** The same for no table in particular: the error names the catalog. */
  public void checkMasterKey(String keyId) {
    try {
      checkOwn(keyId);
    } catch (IcebergCryptoException e) {
      throw e.inCatalog(name);
    }
  }

  private void checkOwn(String keyId) {
    allowedKeyIds().checkNew(keyId);
    if (authenticatesMetadata()) {
      SigningKeys.requireAuthenticatedWrapping(keyId, kms());
    }
  }

  /**
   * A table as the catalog behind has it: nothing is checked, and nothing is decrypted. It is for
   * audits, which tell what they find of {@link #checkMetadata}.
   *
   * @throws NotSupportedException when it has no metadata of its own
   */
  public BaseTable unchecked(TableIdentifier identifier) {
    String table = fullName(identifier);
    Table loaded = CheckedLoad.checked(table, () -> delegate().loadTable(identifier));
    if (loaded instanceof BaseTable base) {
      return base.name().equals(table)
          ? base
          : new BaseTable(base.operations(), table, base.reporter());
    }

    throw NotSupportedException.ofMetadataTable(table);
  }

  /** Loads a table of the catalog behind, decorated. */
  Table load(TableIdentifier identifier) {
    return load(identifier, () -> delegate().loadTable(identifier));
  }

  /** The same, by another call of the catalog behind. */
  Table load(TableIdentifier identifier, Supplier<Table> load) {
    return decorate(CheckedLoad.checked(fullName(identifier), load), identifier);
  }

  /** The table as this catalog gives it: with encryption, and a guard on its commits. */
  Table decorate(Table table, TableIdentifier identifier) {
    if (table instanceof BaseMetadataTable metadataTable) {
      return metadataTable(metadataTable.table(), identifier);
    }

    if (table instanceof BaseTable base) {
      String tableName = fullName(identifier);
      TableKeys keys =
          new TableKeys(tableName, managers, this::kms, uuid -> newest(identifier, uuid));
      return new EncryptedTable(operations(base.operations(), keys), base, tableName, behind);
    }

    if (EncryptionProperties.keyId(table.properties()) != null) {
      throw new NotSupportedException(
              String.format(
                  "it is encrypted, but catalog class %s returns tables of a class that cannot be"
                      + " decorated: %s",
                  delegate().getClass().getName(), table.getClass().getName()),
              "Use a catalog whose tables are org.apache.iceberg.BaseTable.")
          .inTable(fullName(identifier));
    }

    return table;
  }

  /**
   * The keys that a table has in the catalog now. A sink of Flink loads its table once, and stages
   * files for months: by the keys of that time, nobody could commit them after rotations.
   */
  private TableEncryptionManager newest(TableIdentifier identifier, String uuid) {
    Table newest = load(identifier);
    if (newest instanceof BaseTable table
        && !Objects.equals(table.operations().current().uuid(), uuid)) {
      throw new NotSupportedException(
              "it was dropped, and another table was made under its name: its rows are not written"
                  + " into that one",
              "Start the job from the beginning, without its checkpoint, if its rows are for the"
                  + " new table. Nothing was written.")
          .inTable(fullName(identifier));
    }

    if (newest.encryption() instanceof TableEncryptionManager manager) {
      return manager;
    }

    throw new NotEncryptedException(
            String.format(
                "It was encrypted when this job loaded it. Restart the job from its last"
                    + " checkpoint: it then loads the table again. If the job then cannot read a"
                    + " manifest that it staged before, encrypt the table again, with the same key"
                    + " (%s), let the job commit, stop it, and decrypt the table.",
                newest.properties().get(EncryptionProperties.FORMER_KEY_ID)))
        .inTable(fullName(identifier));
  }

  /**
   * The catalog behind would read manifests without keys: rebuilt on the decorated table.
   *
   * @param of the table that the catalog behind has loaded for it
   */
  private Table metadataTable(BaseTable of, TableIdentifier identifier) {
    return MetadataTableUtils.createMetadataTableInstance(
        operations(of.operations(), of.name()),
        delegate().name(),
        TableIdentifier.of(identifier.namespace().levels()),
        identifier,
        MetadataTableType.from(identifier.name()));
  }

  // ---- what only this project's operations do

  /**
   * Signs a table's metadata as it is: for a table whose metadata was refused, and then reviewed
   * and found right.
   *
   * @param metadataFile the metadata file that was looked at
   * @param sha256 the SHA-256 of the file that was looked at, in hex, as sha256sum prints it; with
   *     null the call is refused by an error that has the file's hash
   * @throws InvalidConfigurationException when that is not the table's metadata file now, when the
   *     file has another content, or when this catalog does not authenticate metadata; nothing was
   *     signed
   */
  public void authenticateMetadata(TableIdentifier identifier, String metadataFile, String sha256) {
    if (!authenticatesMetadata()) {
      throw new InvalidConfigurationException(
              "It does not authenticate metadata",
              String.format(
                  "That is for JDBC, Hadoop, Glue and Nessie catalogs without %s=off.",
                  EncryptionProperties.METADATA_AUTHENTICATION))
          .inCatalog(name);
    }

    if (delegate().loadTable(identifier) instanceof BaseTable base) {
      operations(base.operations(), fullName(identifier)).authenticate(metadataFile, sha256);
      delegate().invalidateTable(identifier);
    }
  }

  /**
   * Commits a change to a table that may be in a state in which loads refuse it: without its key
   * id, for one. Metadata that is authenticated has to be genuine, and all steps of a commit apply.
   *
   * @param change makes the metadata to be of that in force; what the steps of a commit add is
   *     committed even if that is the same
   * @throws IcebergCryptoException a refusal; nothing was committed
   */
  public void repair(TableIdentifier identifier, UnaryOperator<TableMetadata> change) {
    BaseTable table = unchecked(identifier);
    TableOperations ops = table.operations();
    operations(ops, table.name())
        .repair(
            change,
            (base, next) ->
                behind.repair(table.name(), ops, base, next.metadata(), next.changes(), this::kms));
    delegate().invalidateTable(identifier);
  }

  /**
   * Commits plaintext metadata in the place of an encrypted table's. No other commit takes a key id
   * away.
   *
   * @param table as {@link #unchecked} has just loaded it
   * @param base the metadata in force
   * @param plaintext made of it, without its key id, its keys and its snapshots
   * @throws IcebergCryptoException when the base is not genuine; nothing was committed
   * @throws CommitStateUnknownException when nobody knows whether it was, or it was and cannot be
   *     loaded
   */
  public void commitPlaintext(
      TableIdentifier identifier, BaseTable table, TableMetadata base, TableMetadata plaintext) {
    operations(table.operations(), table.name()).commitPlaintext(base, plaintext);
    if (behind.isRest()) {
      settleKeys(table, base);
    }

    delegate().invalidateTable(identifier);
  }

  /**
   * A REST server takes commits of other clients beside the one that decrypts. A new KEK, which
   * nothing is under, is removed: without a key id it would stay, and the table be called tampered
   * with. For a snapshot with a key, the key id and the keys are put back: nobody could read it.
   *
   * @param table as {@link #unchecked} gives it
   * @param base the metadata that was decrypted
   * @throws CommitStateUnknownException for any failure here, a cancel included: the table was
   *     decrypted, and a caller that takes that for a refusal deletes its files
   */
  public static void settleKeys(BaseTable table, TableMetadata base) {
    try {
      CommitRetry.commit(
          table.name(), table.operations(), Map.of(), metadata -> withSettledKeys(base, metadata));
    } catch (RuntimeException e) {
      throw new CommitStateUnknownException(
          new IcebergCryptoException(
                  "it was decrypted, but cannot be loaded: " + e.getMessage(),
                  "Load it again. It need not be decrypted again.",
                  e)
              .inTable(table.name()));
    }
  }

  private static TableMetadata withSettledKeys(TableMetadata base, TableMetadata metadata) {
    if (EncryptionProperties.keyId(metadata.properties()) != null) {
      return metadata;
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    if (metadata.snapshots().stream().allMatch(snapshot -> snapshot.keyId() == null)) {
      metadata.encryptionKeys().forEach(key -> builder.removeEncryptionKey(key.keyId()));
    } else {
      base.encryptionKeys().forEach(builder::addEncryptionKey);
      Map<String, String> own = new HashMap<>(base.properties());
      own.keySet().retainAll(EncryptionProperties.OF_TABLES);
      builder.setProperties(own).removeProperties(Set.of(EncryptionProperties.FORMER_KEY_ID));
    }

    return builder.build();
  }

  /**
   * Reads all manifest lists of an encrypted table: who is about to drop it and then to delete its
   * files must have its key.
   *
   * @param elsewhere who reads them if there are many; null: they are read here
   * @throws IcebergCryptoException when a key cannot be had
   */
  public void checkPurge(TableIdentifier identifier, ManifestListCheck elsewhere) {
    purge(identifier).check(elsewhere);
  }

  /**
   * Drops an encrypted table whose key cannot be had, and deletes all files in its location. That
   * is for a key that is lost for good; {@link EncryptedCatalog#dropTable(TableIdentifier,
   * boolean)} deletes what the manifests name.
   *
   * <p>Without the key nobody can tell whether the metadata is genuine: on a Hadoop catalog, and
   * where others write to the storage of a JDBC catalog, look at the table's location first.
   *
   * @param confirm false: it is refused by an error that says why the key seems to be lost. A KMS,
   *     an account or a keystore that is not the table's looks the same
   * @throws InvalidConfigurationException when the table is not encrypted, when the key of any of
   *     its snapshots can be had, when it is not confirmed, or when its location holds another
   *     table; nothing was dropped then
   * @throws NotSupportedException when the storage cannot be listed, or it keeps value keys, which
   *     other master keys may wrap; nothing was dropped then
   * @throws IcebergCryptoException when a login, a grant or a corrected setting could give the key,
   *     or the files were tampered with, which is another matter than a lost key; or when the table
   *     was dropped and files remain
   */
  public PurgeResult purgeWithoutKey(TableIdentifier identifier, boolean confirm) {
    checkValueKeys(identifier, ValueKeyProperties::checkDrop);
    return purge(identifier).runWithoutKey(confirm, behind::newFileIO);
  }

  Purge purge(TableIdentifier identifier) {
    return new Purge(
        () -> load(identifier),
        () -> uncommitted(unchecked(identifier).operations(), fullName(identifier)),
        delegate(),
        identifier,
        fullName(identifier),
        kmsOrNull != null,
        behind::mayShareFiles);
  }

  /**
   * Checks that no value key is lost when a namespace is dropped with its tables.
   *
   * @throws NotSupportedException when the table that keeps them is in it
   */
  public void checkDropOfTables(Namespace namespace) {
    TableIdentifier keys = settings.valueKeyTable();
    if (namespace.toString().equalsIgnoreCase(keys.namespace().toString())) {
      checkValueKeys(keys, ValueKeyProperties::checkDrop);
    }
  }

  /**
   * Value keys stay, and so does the table that keeps them. Some catalogs ignore the case of its
   * name; in others, a table with another case has no value keys.
   */
  void checkValueKeys(TableIdentifier identifier, BiConsumer<String, Map<String, String>> check) {
    String keys = behind.withoutReference(settings.valueKeyTable()).toString();
    if (behind.withoutReference(identifier).toString().equalsIgnoreCase(keys)
        && delegate().tableExists(identifier)) {
      check.accept(fullName(identifier), unchecked(identifier).properties());
    }
  }
}
