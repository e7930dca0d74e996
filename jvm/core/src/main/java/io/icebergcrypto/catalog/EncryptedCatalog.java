package io.icebergcrypto.catalog;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.catalog.behind.LoadingCatalog;
import io.icebergcrypto.catalog.behind.PathCatalog;
import io.icebergcrypto.catalog.behind.SharedKmsClient;
import io.icebergcrypto.catalog.behind.SharedMetricsReporter;
import io.icebergcrypto.cleanup.ManifestListCheck;
import io.icebergcrypto.cleanup.Purge;
import io.icebergcrypto.cleanup.PurgedFiles;
import io.icebergcrypto.commit.CommitRetry;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.IcebergVersion;
import io.icebergcrypto.config.StatisticsPolicy;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.metadata.FailFastFileIO;
import io.icebergcrypto.metadata.HashMismatchRetry;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Catalog.TableBuilder;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.hadoop.Configurable;
import org.apache.iceberg.metrics.MetricsReporter;
import org.apache.iceberg.view.View;

/**
 * Adds table encryption to any Iceberg catalog. Tables with the property {@code encryption.key-id}
 * are encrypted as the Iceberg specification says; tables without it are as the catalog behind has
 * them.
 *
 * <p>Configured by {@code catalog-impl=io.icebergcrypto.catalog.EncryptedCatalog} and one of {@code
 * encryption.catalog-type} (hive, rest, jdbc, hadoop, glue, nessie) and {@code
 * encryption.catalog-impl} (a class). All other properties also go to the catalog behind, but for
 * those that name the KMS: this catalog has the one KMS client.
 */
public final class EncryptedCatalog extends LoadingCatalog implements Configurable<Object> {
  /** Catalog property: the type of the catalog behind this one. */
  public static final String CATALOG_TYPE = EncryptionProperties.CATALOG_TYPE;

  /** Catalog property: the class of the catalog behind this one. */
  public static final String CATALOG_IMPL = EncryptionProperties.CATALOG_IMPL;

  private static final Set<String> OWNER_ONLY = Set.of("owner");

  private Object conf;
  private Map<String, String> properties = Map.of();
  private Catalog delegate;
  private CatalogContext context;

  /** Iceberg makes one by this constructor and then calls {@link #initialize(String, Map)}. */
  public EncryptedCatalog() {}

  /** Takes the Hadoop configuration that the catalog behind gets. */
  @Override
  public void setConf(Object hadoopConf) {
    this.conf = hadoopConf;
  }

  /**
   * Starts the KMS client, if one is configured, and the catalog behind.
   *
   * @throws IcebergCryptoException when the KMS cannot be used as configured
   */
  @Override
  public void initialize(String name, Map<String, String> catalogProperties) {
    this.properties = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    this.properties.putAll(catalogProperties);
    MetricsReporter reporter = null;
    CachingKmsClient kms = null;
    try {
      IcebergVersion.check();
      CatalogSettings settings = new CatalogSettings(properties);
      Map<String, String> behind = settings.propertiesBehind();
      FailFastFileIO.configure(behind);
      EncryptionManagerFactory managers = EncryptionManagerFactory.load(properties);
      reporter = SharedMetricsReporter.load(properties);
      behind.putAll(SharedMetricsReporter.propertiesFor(reporter));
      if (KmsClients.isConfigured(properties)) {
        kms = KmsClients.create(properties);
        behind.putAll(SharedKmsClient.propertiesFor(kms));
      }

      this.delegate = CatalogBehind.open(name, behind, conf);
      this.context =
          CatalogContext.of(
              name,
              settings,
              new CatalogBehind(delegate, properties, conf),
              kms,
              managers,
              reporter);
    } catch (IcebergCryptoException e) {
      closeAfter(e, kms, reporter);
      throw e.inCatalog(name);
    } catch (RuntimeException e) {
      closeAfter(e, kms, reporter);
      throw e;
    }
  }

  /**
   * The tables that are known by their paths only, with this catalog's KMS, settings and defaults
   * for new tables. On disk each is a table of a Hadoop catalog. Its identifier is its location,
   * without a namespace. What is given shares this catalog's KMS client: close this one alone.
   */
  public EncryptedCatalog byPath() {
    EncryptedCatalog paths = new EncryptedCatalog();
    paths.conf = conf;
    paths.properties = context.behind().properties();
    Configuration hadoop = conf instanceof Configuration given ? given : new Configuration();
    paths.delegate = PathCatalog.of(context.name(), paths.properties, context.reporter(), hadoop);
    paths.context =
        CatalogContext.of(
            context.name(),
            context.settings(),
            new CatalogBehind(paths.delegate, paths.properties, conf),
            context.kmsOrNull(),
            context.managers(),
            context.reporter());
    return paths;
  }

  /** The properties that this catalog was configured with. */
  public Map<String, String> properties() {
    return properties;
  }

  /**
   * The KMS client that all tables of this catalog share.
   *
   * @throws InvalidConfigurationException when the catalog names no KMS
   */
  public CachingKmsClient kms() {
    return context.kms();
  }

  /** The master keys that its tables may name, and that may sign reports on them. */
  public AllowedKeyIds allowedKeyIds() {
    return context.allowedKeyIds();
  }

  /** What becomes of statistics files of encrypted tables. */
  public StatisticsPolicy statistics() {
    return context.settings().statistics();
  }

  /** Whether a SQL user may read data keys in metadata tables. */
  public boolean exposesKeyMetadata() {
    return context.settings().exposesKeyMetadata();
  }

  /**
   * Whether a new table would be encrypted, or would have to be.
   *
   * @param namespace the one that the table is to be in
   * @param own the table properties that the statement gives
   */
  public boolean encryptsNewTable(Namespace namespace, Map<String, String> own) {
    return context.settings().encryptionRequired()
        || EncryptionProperties.keyId(context.propertiesOfNewTable(own)) != null
        || namespaceKeys().of(namespace) != null;
  }

  /** Whether the metadata of encrypted tables is authenticated. */
  public boolean authenticatesMetadata() {
    return context.authenticatesMetadata();
  }

  @Override
  public Catalog delegate() {
    return delegate;
  }

  /**
   * Signs a table's metadata as it is: for a table whose metadata was refused, after somebody
   * looked at it and found it right.
   *
   * @param metadataFile the metadata file that was looked at
   * @param sha256 the SHA-256 of the file that was looked at, in hex, as sha256sum prints it; with
   *     null the call is refused by an error that has the file's hash
   * @throws InvalidConfigurationException when that is not the table's metadata file now, when the
   *     file has another content, or when this catalog does not authenticate metadata; nothing was
   *     signed
   */
  public void authenticateMetadata(TableIdentifier identifier, String metadataFile, String sha256) {
    if (!context.authenticatesMetadata()) {
      throw new InvalidConfigurationException(
              "It does not authenticate metadata",
              String.format(
                  "That is for JDBC, Hadoop, Glue and Nessie catalogs without %s=off.",
                  EncryptionProperties.METADATA_AUTHENTICATION))
          .inCatalog(context.name());
    }

    if (delegate.loadTable(identifier) instanceof BaseTable base) {
      context
          .operations(base.operations(), context.fullName(identifier))
          .authenticate(metadataFile, sha256);
      delegate.invalidateTable(identifier);
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
  public void mend(TableIdentifier identifier, UnaryOperator<TableMetadata> change) {
    BaseTable table = unchecked(identifier);
    TableOperations ops = table.operations();
    context
        .operations(ops, table.name())
        .mend(
            change,
            (base, mended) -> context.behind().mend(table.name(), ops, base, mended, context::kms));
    delegate.invalidateTable(identifier);
  }

  /**
   * Commits plaintext metadata in the place of an encrypted table's. No other commit takes a key id
   * away.
   *
   * @param base the metadata in force
   * @param plaintext made of it, without its key id, its keys and its snapshots
   * @throws IcebergCryptoException when the base is not genuine; nothing was committed
   * @throws CommitStateUnknownException when nobody knows whether it was, or it was and cannot be
   *     loaded
   */
  public void commitPlaintext(
      TableIdentifier identifier, TableMetadata base, TableMetadata plaintext) {
    BaseTable table = unchecked(identifier);
    context.operations(table.operations(), table.name()).commitPlaintext(base, plaintext);
    if (context.behind().isRest()) {
      removeKeysOfRivals(table);
    }

    delegate.invalidateTable(identifier);
  }

  /**
   * A REST server takes a new KEK beside the commit that decrypts: without a key id it would stay,
   * and the table be called tampered with. Nothing is under it.
   *
   * @throws CommitStateUnknownException whatever fails here, a cancel included: the table was
   *     decrypted, and who takes that for a refusal deletes its files
   */
  private static void removeKeysOfRivals(BaseTable table) {
    try {
      CommitRetry.commit(
          table.name(), table.operations(), Map.of(), EncryptedCatalog::withoutKeysOfPlaintext);
    } catch (RuntimeException e) {
      throw new CommitStateUnknownException(
          new IcebergCryptoException(
                  "it was decrypted, and cannot be loaded: " + e.getMessage(),
                  "Load it once more. It need not be decrypted again.",
                  e)
              .inTable(table.name()));
    }
  }

  private static TableMetadata withoutKeysOfPlaintext(TableMetadata metadata) {
    boolean isPlaintext =
        EncryptionProperties.keyId(metadata.properties()) == null
            && metadata.snapshots().stream().allMatch(snapshot -> snapshot.keyId() == null);
    if (!isPlaintext || metadata.encryptionKeys().isEmpty()) {
      return metadata;
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    metadata.encryptionKeys().forEach(key -> builder.removeEncryptionKey(key.keyId()));
    return builder.build();
  }

  /**
   * The operations of a table whose metadata another KMS may vouch for than this catalog's: that of
   * before a move to this one. Commits are signed with this catalog's.
   *
   * @param table one of {@link #unchecked}
   * @param kms unwraps the KEKs of metadata that is checked
   */
  public TableOperations operations(BaseTable table, KeyManagementClient kms) {
    return context.operations(table.operations(), table.name(), kms);
  }

  // ---- audits

  /** A table's name with that of this catalog. */
  public String fullName(TableIdentifier identifier) {
    return context.fullName(identifier);
  }

  /** The age in days from which on a KEK is overdue. */
  public int kekMaxAgeDays() {
    return context.settings().kekMaxAgeDays();
  }

  /** The catalog behind, and what its class does differently. */
  public CatalogBehind behind() {
    return context.behind();
  }

  /**
   * Checks that a table may have a master key, before the KMS is asked for it.
   *
   * @throws AccessDeniedException when this catalog does not allow it
   * @throws InvalidConfigurationException when others than its users can wrap with it, and the
   *     metadata is authenticated
   */
  public void checkMasterKey(String table, String keyId) {
    context.allowedKeyIds().checkNew(table, keyId);
    context.checkMasterKey(table, keyId);
  }

  /** Whether each table is to be encrypted. */
  public boolean requiresEncryption() {
    return context.settings().encryptionRequired();
  }

  /**
   * A table as the catalog behind has it: nothing is checked, and nothing is decrypted. It is for
   * audits, which tell what they find of {@link #checkMetadata}.
   *
   * @throws NotSupportedException when it has no metadata of its own
   */
  public BaseTable unchecked(TableIdentifier identifier) {
    String name = context.fullName(identifier);
    Table table = HashMismatchRetry.checked(name, () -> delegate.loadTable(identifier));
    if (table instanceof BaseTable base) {
      return base.name().equals(name)
          ? base
          : new BaseTable(base.operations(), name, base.reporter());
    }

    throw new NotSupportedException(
            "it is not a table with metadata of its own",
            "Give the table, without the name of a metadata table behind it.")
        .inTable(name);
  }

  /**
   * Checks a table's metadata as a load does.
   *
   * @param kms gives the keys
   * @return whether the metadata is authenticated
   * @throws IcebergCryptoException as a load does
   */
  public MetadataAuthentication checkMetadata(BaseTable table, KeyManagementClient kms) {
    return context.checkMetadata(table, () -> kms);
  }

  /** The same with this catalog's own client, if a key is needed. */
  public MetadataAuthentication checkMetadata(BaseTable table) {
    return context.checkMetadata(table, context::kms);
  }

  /**
   * Signs the metadata of a table's copy, where this catalog authenticates metadata.
   *
   * @param table the table
   * @param file where the copy's metadata file will be
   * @return the metadata with a MAC; the same where metadata is not authenticated
   */
  public TableMetadata signedFor(BaseTable table, String file, TableMetadata metadata) {
    return context.signedFor(table, file, metadata);
  }

  /**
   * A table of metadata that is not in the catalog, with this one's encryption: such as that of a
   * table which is to be encrypted, before it is committed.
   *
   * @param ops operations that keep the metadata, and read and write plain files
   * @param name the table's full name
   */
  public BaseTable uncommitted(TableOperations ops, String name) {
    return context.uncommitted(ops, name);
  }

  // ---- tables

  @Override
  public Table loadTable(TableIdentifier identifier) {
    return context.load(identifier);
  }

  @Override
  protected Table decorated(TableIdentifier identifier, Supplier<Table> behind) {
    return context.load(identifier, behind);
  }

  @Override
  public TableBuilder buildTable(TableIdentifier identifier, Schema schema) {
    return new EncryptedTableBuilder(context, identifier, delegate.buildTable(identifier, schema));
  }

  @Override
  public Table registerTable(TableIdentifier identifier, String metadataFileLocation) {
    return registerTable(identifier, metadataFileLocation, false);
  }

  @Override
  public Table registerTable(
      TableIdentifier identifier, String metadataFileLocation, boolean overwrite) {
    return new Registration(context, identifier, metadataFileLocation).register(overwrite);
  }

  /** Drops as the catalog behind does by default: with its files, but on REST without. */
  @Override
  public boolean dropTable(TableIdentifier identifier) {
    if (context.behind().isRest()) {
      checkValueKeys(identifier, ValueKeyProperties::checkDrop);
      return delegate.dropTable(identifier);
    }

    return dropTable(identifier, true);
  }

  @Override
  public boolean dropTable(TableIdentifier identifier, boolean purge) {
    checkValueKeys(identifier, ValueKeyProperties::checkDrop);
    return purge && !context.behind().ignoresPurge()
        ? purge(identifier).run()
        : delegate.dropTable(identifier, purge);
  }

  @Override
  public void renameTable(TableIdentifier from, TableIdentifier to) {
    checkValueKeys(from, ValueKeyProperties::checkRename);
    super.renameTable(from, to);
  }

  /** Value keys stay, and so does the table that keeps them. */
  private void checkValueKeys(
      TableIdentifier identifier, BiConsumer<String, Map<String, String>> check) {
    if (identifier.equals(ValueKeyProperties.table(properties)) && tableExists(identifier)) {
      check.accept(context.fullName(identifier), unchecked(identifier).properties());
    }
  }

  /**
   * Drops a table that the caller has made just now, unless somebody has committed to it since.
   *
   * @param made its metadata as it was made, taken then: a table's own go on with its commits
   */
  public void takeBack(TableIdentifier identifier, TableMetadata made) {
    context.behind().takeBack(identifier, made);
  }

  /**
   * Reads all manifest lists of an encrypted table: who is about to drop it and then to delete its
   * files must have its key.
   *
   * @throws IcebergCryptoException when a key cannot be had
   */
  public void checkPurge(TableIdentifier identifier) {
    purge(identifier).check();
  }

  /**
   * The same, by somebody else if the table has many lists.
   *
   * @param elsewhere who reads them
   */
  public void checkPurge(TableIdentifier identifier, ManifestListCheck elsewhere) {
    purge(identifier).check(elsewhere);
  }

  /**
   * Drops an encrypted table whose key cannot be had, and deletes all files in its location. That
   * is for a key that is lost for good; {@link #dropTable(TableIdentifier, boolean)} deletes what
   * the manifests name.
   *
   * <p>Without the key nobody can tell whether the metadata is genuine: on a Hadoop catalog, and
   * where others write to the storage of a JDBC catalog, look at the table's location first.
   *
   * @throws InvalidConfigurationException when the table is not encrypted, when its key can be had,
   *     or when its location holds another table; nothing was dropped then
   * @throws NotSupportedException when the storage cannot be listed, or it keeps value keys, which
   *     other master keys may wrap; nothing was dropped then
   * @throws IcebergCryptoException when a login, a grant or a mended setting could give the key, or
   *     the files were tampered with, which is another matter than a lost key; or when the table
   *     was dropped and files remain
   */
  public PurgedFiles purgeWithoutKey(TableIdentifier identifier) {
    checkValueKeys(identifier, ValueKeyProperties::checkDrop);
    return purge(identifier).runWithoutKey(context.behind()::newFileIO);
  }

  private Purge purge(TableIdentifier identifier) {
    boolean hasKms = context.kmsOrNull() != null;
    return new Purge(this, delegate, context.name(), identifier, hasKms);
  }

  // ---- namespaces

  /** The master keys that namespaces give to new tables. */
  public NamespaceKeys namespaceKeys() {
    return new NamespaceKeys(context);
  }

  @Override
  public void createNamespace(Namespace namespace, Map<String, String> metadata) {
    namespaceKeys().check(namespace, metadata);
    // Spark adds the owner, which a Hadoop catalog cannot keep; SparkCatalog drops it when it sees
    // one
    boolean dropOwner = context.behind().isHadoop() && metadata.keySet().equals(OWNER_ONLY);
    super.createNamespace(namespace, dropOwner ? Map.of() : metadata);
    namespaceKeys().checkKept(namespace, metadata);
  }

  @Override
  public boolean setProperties(Namespace namespace, Map<String, String> newProperties)
      throws NoSuchNamespaceException {
    namespaceKeys().check(namespace, newProperties);
    boolean changed = super.setProperties(namespace, newProperties);
    namespaceKeys().checkKept(namespace, newProperties);
    return changed;
  }

  // ---- views: a catalog without them has none, and makes none

  @Override
  public View loadView(TableIdentifier identifier) {
    return named(identifier, () -> super.loadView(identifier));
  }

  @Override
  protected View named(TableIdentifier identifier, Supplier<View> behind) {
    return HashMismatchRetry.checked(context.fullName(identifier), behind);
  }

  /** Closes the catalog behind and the KMS client, whose keys in memory are overwritten. */
  @Override
  public void close() throws IOException {
    close(
        context == null ? null : context.kmsOrNull(), context == null ? null : context.reporter());
  }

  private void close(CachingKmsClient kms, MetricsReporter reporter) throws IOException {
    try (kms;
        reporter) {
      super.close();
    }
  }

  private void closeAfter(
      RuntimeException failure, CachingKmsClient kms, MetricsReporter reporter) {
    try {
      close(kms, reporter);
    } catch (IOException | RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  @Override
  public String toString() {
    return "EncryptedCatalog(" + delegate + ")";
  }
}
