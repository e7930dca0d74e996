package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.PathCatalog;
import io.icebergcrypto.catalog.behind.ServerRefusal;
import io.icebergcrypto.catalog.behind.SharedKmsClient;
import io.icebergcrypto.catalog.behind.SharedMetricsReporter;
import io.icebergcrypto.cleanup.Purge;
import io.icebergcrypto.cleanup.PurgedFiles;
import io.icebergcrypto.commit.CommitGuard;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.MetadataAuthentication;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.integrity.MetadataFile;
import io.icebergcrypto.integrity.MetadataHash;
import io.icebergcrypto.integrity.SigningKeys;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.io.StatisticsPolicy;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import java.io.Closeable;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.MetadataTableUtils;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.LoadContext;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.catalog.ViewCatalog;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchViewException;
import org.apache.iceberg.hadoop.Configurable;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.ResolvingFileIO;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.metrics.MetricsReporter;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.view.View;
import org.apache.iceberg.view.ViewBuilder;

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
public final class EncryptedCatalog
    implements Catalog, SupportsNamespaces, ViewCatalog, Configurable<Object>, Closeable {
  /** Catalog property: the type of the catalog behind this one. */
  public static final String CATALOG_TYPE = "encryption.catalog-type";

  /** Catalog property: the class of the catalog behind this one. */
  public static final String CATALOG_IMPL = "encryption.catalog-impl";

  private static final Set<String> OWNER_ONLY = Set.of("owner");

  private Object conf;
  private String catalogName;
  private Map<String, String> properties = Map.of();
  private CatalogSettings settings;
  private Catalog delegate;
  private CachingKmsClient kms;
  private EncryptionManagerFactory managers;
  private MetricsReporter reporter;
  private boolean authenticatesMetadata;

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
    this.catalogName = name;
    this.properties = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    this.properties.putAll(catalogProperties);
    try {
      this.settings = new CatalogSettings(properties);
      Map<String, String> behind = settings.propertiesBehind();
      this.managers = settings.newManagerFactory();
      this.reporter = SharedMetricsReporter.load(properties);
      behind.putAll(SharedMetricsReporter.propertiesFor(reporter));
      if (KmsClients.isConfigured(properties)) {
        this.kms = KmsClients.create(properties);
        behind.putAll(SharedKmsClient.propertiesFor(kms));
      }

      this.delegate = CatalogUtil.buildIcebergCatalog(name, behind, conf);
      this.authenticatesMetadata = settings.authenticatesMetadata(delegate);
    } catch (IcebergCryptoException e) {
      closeAfter(e);
      throw e.inCatalog(name);
    } catch (RuntimeException e) {
      closeAfter(e);
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
    paths.catalogName = catalogName;
    paths.properties = propertiesInForce();
    paths.settings = settings;
    paths.kms = kms;
    paths.managers = managers;
    paths.reporter = reporter;
    Configuration hadoop = conf instanceof Configuration given ? given : new Configuration();
    paths.delegate = PathCatalog.of(catalogName, paths.properties, reporter, hadoop);
    paths.authenticatesMetadata = settings.authenticatesMetadata(paths.delegate);
    return paths;
  }

  private void closeAfter(RuntimeException failure) {
    try {
      close();
    } catch (IOException | RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  private void closeOwn() {
    if (reporter != null) {
      reporter.close();
    }

    if (kms != null) {
      kms.close();
    }
  }

  @Override
  public String name() {
    return delegate.name();
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
    if (kms == null) {
      throw KmsClients.notConfigured().inCatalog(catalogName);
    }

    return kms;
  }

  /** What becomes of statistics files of encrypted tables. */
  public StatisticsPolicy statistics() {
    return settings.statistics();
  }

  /** Whether a SQL user may read data keys in metadata tables. */
  public boolean exposesKeyMetadata() {
    return settings.exposesKeyMetadata();
  }

  /**
   * Whether a new table would be encrypted, or would have to be.
   *
   * @param namespace the one that the table is to be in
   * @param own the table properties that the statement gives
   */
  public boolean encryptsNewTable(Namespace namespace, Map<String, String> own) {
    return encryptionRequired()
        || EncryptionProperties.keyId(propertiesOfNewTable(own)) != null
        || namespaceKeys().of(namespace) != null;
  }

  /** Whether the catalog names a KMS. */
  public boolean hasKms() {
    return kms != null;
  }

  /** The name that this catalog was given. */
  public String catalogName() {
    return catalogName;
  }

  /** The Hadoop configuration. */
  Object conf() {
    return conf;
  }

  /** The catalog behind. */
  public Catalog delegate() {
    return delegate;
  }

  boolean isRest() {
    return delegate instanceof RESTCatalog;
  }

  boolean encryptionRequired() {
    return settings.encryptionRequired();
  }

  /** The master keys that tables may name. */
  AllowedKeyIds allowedKeyIds() {
    return settings.allowedKeyIds();
  }

  Map<String, String> propertiesOfNewTable(Map<String, String> own) {
    return EncryptionProperties.ofNewTable(propertiesInForce(), own);
  }

  /** This catalog's properties, with those that a REST server adds. */
  Map<String, String> propertiesInForce() {
    return delegate instanceof RESTCatalog rest ? rest.properties() : properties;
  }

  public String fullName(TableIdentifier identifier) {
    return CatalogUtil.fullTableName(catalogName, identifier);
  }

  /** The metrics reporter of tables that are being created. */
  MetricsReporter reporter() {
    return reporter;
  }

  /**
   * The metrics reporter that the catalog behind gave a table, which may be null: not there yet.
   */
  MetricsReporter reporterOf(Table table) {
    return table instanceof BaseTable base ? base.reporter() : reporter;
  }

  /** Storage of this catalog's own, of the class that the catalog behind would take. */
  public FileIO newFileIO() {
    Map<String, String> all = propertiesInForce();
    boolean onHadoop =
        delegate instanceof JdbcCatalog
            || delegate instanceof HadoopCatalog
            || delegate.getClass().getName().equals(CatalogUtil.ICEBERG_CATALOG_HIVE);
    Class<? extends FileIO> usual = onHadoop ? HadoopFileIO.class : ResolvingFileIO.class;
    return CatalogUtil.loadFileIO(
        all.getOrDefault(CatalogProperties.FILE_IO_IMPL, usual.getName()), all, conf);
  }

  EncryptedTableOperations operations(TableOperations ops, String table) {
    return new EncryptedTableOperations(
        ops,
        new TableKeys(table, managers, this::kms),
        new CommitGuard(table, settings.plaintextFiles(), settings.statistics()),
        authenticator(table, ops),
        settings.allowedKeyIds(),
        !settings.refusesPlaintextTables());
  }

  private MetadataAuthenticator authenticator(String table, TableOperations ops) {
    return authenticatesMetadata
        ? MetadataAuthenticator.of(
            table,
            ops,
            delegate instanceof HadoopCatalog,
            this::kms,
            CatalogSettings.setOnLoad(delegate))
        : MetadataAuthenticator.off(settings.insteadOfAuthentication(delegate));
  }

  /** Checks a table of the catalog behind: its key id, and metadata that is authenticated. */
  void checkMetadata(Table table) {
    if (table instanceof BaseTable base) {
      TableMetadata metadata = base.operations().current();
      allowedKeyIds().check(base.name(), metadata);
      authenticator(base.name(), base.operations()).check(metadata);
    }
  }

  /** Checks the metadata of a file that is to become a table's, as that of a table. */
  void checkMetadata(TableIdentifier identifier, MetadataFile file) {
    allowedKeyIds().check(fullName(identifier), file.metadata());
    authenticator(fullName(identifier), null).check(file);
  }

  /**
   * Refuses a master key that cannot vouch for metadata, where that is to be authenticated.
   *
   * @throws InvalidConfigurationException when others than its users can wrap with it
   */
  void checkMasterKey(String table, String keyId) {
    if (authenticatesMetadata) {
      SigningKeys.requireAuthenticatedWrapping(table, keyId, kms());
    }
  }

  /** Whether the metadata of encrypted tables is authenticated. */
  boolean authenticatesMetadata() {
    return authenticatesMetadata;
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
    if (!authenticatesMetadata) {
      throw new InvalidConfigurationException(
              "It does not authenticate metadata",
              String.format(
                  "That is for JDBC, Hadoop, Glue and Nessie catalogs without %s=off.",
                  EncryptionProperties.METADATA_AUTHENTICATION))
          .inCatalog(catalogName);
    }

    if (delegate.loadTable(identifier) instanceof BaseTable base) {
      operations(base.operations(), base.name()).authenticate(base.name(), metadataFile, sha256);
      delegate.invalidateTable(identifier);
    }
  }

  /** The table as this catalog gives it: with encryption, and a guard on its commits. */
  Table decorate(Table table, TableIdentifier identifier) {
    if (table instanceof BaseMetadataTable) {
      return metadataTable(identifier);
    }

    if (table instanceof BaseTable base) {
      return new EncryptedTable(operations(base.operations(), base.name()), base);
    }

    if (EncryptionProperties.keyId(table.properties()) != null) {
      throw new NotSupportedException(
              String.format(
                  "it is encrypted, and catalog class %s gives tables of a class that cannot be"
                      + " decorated: %s",
                  delegate.getClass().getName(), table.getClass().getName()),
              "Use a catalog whose tables are org.apache.iceberg.BaseTable.")
          .inTable(fullName(identifier));
    }

    return table;
  }

  /**
   * The table as an audit reads it: with the files that are plaintext, whatever the catalog allows.
   */
  public static BaseTable withPlaintextFiles(BaseTable table) {
    return table instanceof EncryptedTable encrypted ? encrypted.withPlaintextFiles() : table;
  }

  /** Whether a table's metadata is authenticated, and by what, or why not. */
  public static MetadataAuthentication metadataAuthentication(BaseTable table) {
    return table instanceof EncryptedTable encrypted
        ? encrypted.metadataAuthentication()
        : new MetadataAuthentication(false, "its catalog is not one of iceberg-crypto");
  }

  /** The catalog behind would read manifests without keys: built anew on the decorated table. */
  private Table metadataTable(TableIdentifier identifier) {
    TableIdentifier of = TableIdentifier.of(identifier.namespace().levels());
    Table table = loadTable(of);
    return MetadataTableUtils.createMetadataTableInstance(
        ((HasTableOperations) table).operations(),
        delegate.name(),
        of,
        identifier,
        MetadataTableType.from(identifier.name()));
  }

  // ---- tables

  @Override
  public List<TableIdentifier> listTables(Namespace namespace) {
    return delegate.listTables(namespace);
  }

  @Override
  public boolean tableExists(TableIdentifier identifier) {
    return delegate.tableExists(identifier);
  }

  @Override
  public Table loadTable(TableIdentifier identifier) {
    return decorate(loaded(identifier, () -> delegate.loadTable(identifier)), identifier);
  }

  @Override
  public Table loadTable(TableIdentifier identifier, LoadContext context) {
    return decorate(loaded(identifier, () -> delegate.loadTable(identifier, context)), identifier);
  }

  private Table loaded(TableIdentifier identifier, Supplier<Table> load) {
    return MetadataHash.checked(fullName(identifier), load);
  }

  @Override
  public void invalidateTable(TableIdentifier identifier) {
    delegate.invalidateTable(identifier);
  }

  @Override
  public TableBuilder buildTable(TableIdentifier identifier, Schema schema) {
    return new EncryptedTableBuilder(this, identifier, delegate.buildTable(identifier, schema));
  }

  @Override
  public Table registerTable(TableIdentifier identifier, String metadataFileLocation) {
    return registerTable(identifier, metadataFileLocation, false);
  }

  @Override
  public Table registerTable(
      TableIdentifier identifier, String metadataFileLocation, boolean overwrite) {
    return new Registration(this, identifier, metadataFileLocation).register(overwrite);
  }

  @Override
  public void renameTable(TableIdentifier from, TableIdentifier to) {
    delegate.renameTable(from, to);
  }

  /** Drops as the catalog behind does by default: with its files, but on REST without. */
  @Override
  public boolean dropTable(TableIdentifier identifier) {
    return isRest() ? delegate.dropTable(identifier) : dropTable(identifier, true);
  }

  @Override
  public boolean dropTable(TableIdentifier identifier, boolean purge) {
    return purge && !ignoresPurge()
        ? new Purge(this, identifier).run()
        : delegate.dropTable(identifier, purge);
  }

  /**
   * Whether an error says that the catalog's server creates no table in a transaction; nothing was
   * made then.
   */
  public static boolean isRefusedTransaction(RuntimeException e) {
    return ServerRefusal.isOfStagedCreate(e);
  }

  /**
   * Drops a table that the caller has made just now, unless somebody has committed to it since.
   *
   * @param made its metadata as it was made, taken then: a table's own go on with its commits
   */
  public void takeBack(TableIdentifier identifier, TableMetadata made) {
    delegate.invalidateTable(identifier);
    TableMetadata now =
        ((HasTableOperations) delegate.loadTable(identifier)).operations().current();
    if (!Objects.equals(now.uuid(), made.uuid())
        || !Objects.equals(now.metadataFileLocation(), made.metadataFileLocation())
        || now.snapshots().size() != made.snapshots().size()) {
      return;
    }

    try {
      delegate.dropTable(identifier, true); // with the metadata file that the server wrote
    } catch (RuntimeException e) {
      delegate.dropTable(identifier, false); // a server may refuse to purge
    }
  }

  /** Nessie keeps files on purpose: other branches may reach them. */
  private boolean ignoresPurge() {
    return CatalogSettings.isA(delegate, CatalogUtil.ICEBERG_CATALOG_NESSIE);
  }

  /**
   * Reads all manifest lists of an encrypted table: who is about to drop it and then to delete its
   * files must have its key.
   *
   * @throws IcebergCryptoException when a key cannot be had
   */
  public void checkPurge(TableIdentifier identifier) {
    new Purge(this, identifier).check();
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
   * @throws NotSupportedException when the storage cannot be listed; nothing was dropped then
   * @throws IcebergCryptoException when a login, a grant or a mended setting could give the key, or
   *     the files were tampered with, which is another matter than a lost key; or when the table
   *     was dropped and files remain
   */
  public PurgedFiles purgeWithoutKey(TableIdentifier identifier) {
    return new Purge(this, identifier).runWithoutKey();
  }

  // ---- namespaces

  private SupportsNamespaces namespaces() {
    if (delegate instanceof SupportsNamespaces catalog) {
      return catalog;
    }

    throw new UnsupportedOperationException(
        "Namespaces are not supported by catalog: " + delegate.name());
  }

  @Override
  public void createNamespace(Namespace namespace) {
    namespaces().createNamespace(namespace);
  }

  /** The master keys that namespaces give to new tables. */
  public NamespaceKeys namespaceKeys() {
    return new NamespaceKeys(this);
  }

  @Override
  public void createNamespace(Namespace namespace, Map<String, String> metadata) {
    namespaceKeys().check(namespace, metadata);
    // Spark adds the owner, which a Hadoop catalog cannot keep; SparkCatalog drops it when it sees
    // one
    boolean dropOwner = delegate instanceof HadoopCatalog && metadata.keySet().equals(OWNER_ONLY);
    namespaces().createNamespace(namespace, dropOwner ? Map.of() : metadata);
    namespaceKeys().checkKept(namespace, metadata);
  }

  @Override
  public List<Namespace> listNamespaces() {
    return namespaces().listNamespaces();
  }

  @Override
  public List<Namespace> listNamespaces(Namespace namespace) throws NoSuchNamespaceException {
    return namespaces().listNamespaces(namespace);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(Namespace namespace)
      throws NoSuchNamespaceException {
    return namespaces().loadNamespaceMetadata(namespace);
  }

  @Override
  public boolean dropNamespace(Namespace namespace) {
    return namespaces().dropNamespace(namespace);
  }

  @Override
  public boolean setProperties(Namespace namespace, Map<String, String> newProperties)
      throws NoSuchNamespaceException {
    namespaceKeys().check(namespace, newProperties);
    boolean changed = namespaces().setProperties(namespace, newProperties);
    namespaceKeys().checkKept(namespace, newProperties);
    return changed;
  }

  @Override
  public boolean removeProperties(Namespace namespace, Set<String> names)
      throws NoSuchNamespaceException {
    return namespaces().removeProperties(namespace, names);
  }

  @Override
  public boolean namespaceExists(Namespace namespace) {
    return namespaces().namespaceExists(namespace);
  }

  // ---- views: a catalog without them has none, and makes none

  @Override
  public List<TableIdentifier> listViews(Namespace namespace) {
    return delegate instanceof ViewCatalog views ? views.listViews(namespace) : List.of();
  }

  @Override
  public View loadView(TableIdentifier identifier) {
    return MetadataHash.checked(
        fullName(identifier), () -> viewsFor(identifier).loadView(identifier));
  }

  @Override
  public View loadView(TableIdentifier identifier, LoadContext context) {
    return MetadataHash.checked(
        fullName(identifier), () -> viewsFor(identifier).loadView(identifier, context));
  }

  @Override
  public boolean viewExists(TableIdentifier identifier) {
    return delegate instanceof ViewCatalog views && views.viewExists(identifier);
  }

  @Override
  public ViewBuilder buildView(TableIdentifier identifier) {
    return views().buildView(identifier);
  }

  @Override
  public boolean dropView(TableIdentifier identifier) {
    return delegate instanceof ViewCatalog views && views.dropView(identifier);
  }

  @Override
  public void renameView(TableIdentifier from, TableIdentifier to) {
    viewsFor(from).renameView(from, to);
  }

  @Override
  public void invalidateView(TableIdentifier identifier) {
    if (delegate instanceof ViewCatalog views) {
      views.invalidateView(identifier);
    }
  }

  @Override
  public View registerView(TableIdentifier identifier, String metadataFileLocation) {
    return views().registerView(identifier, metadataFileLocation);
  }

  private ViewCatalog views() {
    if (delegate instanceof ViewCatalog views) {
      return views;
    }

    throw new UnsupportedOperationException(
        "Views are not supported by catalog: " + delegate.name());
  }

  private ViewCatalog viewsFor(TableIdentifier identifier) {
    if (delegate instanceof ViewCatalog views) {
      return views;
    }

    throw new NoSuchViewException("View does not exist: %s", identifier);
  }

  // ----

  /** Closes the catalog behind and the KMS client, whose keys in memory are overwritten. */
  @Override
  public void close() throws IOException {
    try {
      if (delegate instanceof Closeable closeable) {
        closeable.close();
      }
    } finally {
      closeOwn();
    }
  }

  @Override
  public String toString() {
    return "EncryptedCatalog(" + delegate + ")";
  }
}
