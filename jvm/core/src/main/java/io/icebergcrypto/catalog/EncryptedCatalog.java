package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.catalog.behind.HandoverKmsClient;
import io.icebergcrypto.catalog.behind.HandoverMetricsReporter;
import io.icebergcrypto.catalog.behind.LoadingCatalog;
import io.icebergcrypto.catalog.behind.PathCatalog;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.IcebergVersion;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.metadata.CheckedLoad;
import io.icebergcrypto.metadata.FailFastFileIO;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Catalog.TableBuilder;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.hadoop.Configurable;
import org.apache.iceberg.io.CloseableGroup;
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

  /** Where metadata tables have data keys; a user's own columns are deeper. */
  private static final Set<String> KEY_COLUMNS =
      Set.of(DataFile.KEY_METADATA.name(), "data_file." + DataFile.KEY_METADATA.name());

  private Object conf;
  private Catalog delegate;
  private CatalogContext context;
  private boolean engineHidesKeys = false;

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
    Map<String, String> properties = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    properties.putAll(catalogProperties);
    MetricsReporter reporter = null;
    CachingKmsClient kms = null;
    try {
      IcebergVersion.check();
      CatalogSettings settings = new CatalogSettings(properties);
      Map<String, String> behind = settings.propertiesBehind();
      FailFastFileIO.configure(behind);
      EncryptionManagerFactory managers = EncryptionManagerFactory.load(properties);
      reporter = CatalogUtil.loadMetricsReporter(properties);
      behind.putAll(HandoverMetricsReporter.propertiesFor(reporter));
      if (KmsClients.isConfigured(properties)) {
        kms = KmsClients.create(properties);
        behind.putAll(HandoverKmsClient.propertiesFor(kms));
      }

      this.delegate = CatalogBehind.open(name, behind, conf);
      this.context =
          new CatalogContext(
              name,
              settings,
              new CatalogBehind(delegate, properties, conf),
              kms,
              managers,
              reporter);
    } catch (IcebergCryptoException e) {
      closeAfter(e, kms, reporter);
      throw e.inCatalog(name);
    } catch (RuntimeException | LinkageError e) { // of a library that is not there
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
    paths.engineHidesKeys = engineHidesKeys;
    Map<String, String> properties = context.behind().properties();
    Configuration hadoop = conf instanceof Configuration given ? given : new Configuration();
    paths.delegate = PathCatalog.of(context.name(), properties, context.reporter(), hadoop);
    paths.context =
        new CatalogContext(
            context.name(),
            context.settings(),
            new CatalogBehind(paths.delegate, properties, conf),
            context.kmsOrNull(),
            context.managers(),
            context.reporter());
    return paths;
  }

  @Override
  public Catalog delegate() {
    return delegate;
  }

  /** What audits, changes of keys and engines ask of this catalog beyond Iceberg's interface. */
  public CatalogContext context() {
    return context;
  }

  /**
   * Leaves it to the engine to hide data keys in metadata tables from its users, as Spark's
   * catalogs of this project do. Otherwise these tables are refused where they have data keys.
   */
  public void engineHidesKeys() {
    this.engineHidesKeys = true;
  }

  // ---- tables

  @Override
  public Table loadTable(TableIdentifier identifier) {
    return withoutKeys(identifier, context.load(identifier));
  }

  @Override
  protected Table decorated(TableIdentifier identifier, Supplier<Table> behind) {
    return withoutKeys(identifier, context.load(identifier, behind));
  }

  @Override
  public TableBuilder buildTable(TableIdentifier identifier, Schema schema) {
    return new EncryptedTableBuilder(context, identifier, delegate.buildTable(identifier, schema));
  }

  /** No table of another class would do: Flink asks for Iceberg's own, which nobody can extend. */
  private Table withoutKeys(TableIdentifier identifier, Table table) {
    if (engineHidesKeys
        || context.settings().exposesKeyMetadata()
        || !(table instanceof BaseMetadataTable metadataTable)
        || KEY_COLUMNS.stream().allMatch(name -> table.schema().findField(name) == null)
        || EncryptionProperties.keyId(metadataTable.table().properties()) == null) {
      return table;
    }

    throw new NotSupportedException(
            "this metadata table would show data keys (key_metadata) to everyone who queries it",
            String.format(
                "Query it in Spark, where this column is null. If all users of this catalog may"
                    + " have the data keys, set its property %s=true. In Java, make it of the"
                    + " table: MetadataTableUtils.createMetadataTableInstance(table, type).",
                EncryptionProperties.EXPOSE_KEY_METADATA))
        .inTable(context.fullName(identifier));
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
      context.checkValueKeys(identifier, ValueKeyProperties::checkDrop);
      return delegate.dropTable(identifier);
    }

    return dropTable(identifier, true);
  }

  @Override
  public boolean dropTable(TableIdentifier identifier, boolean purge) {
    context.checkValueKeys(identifier, ValueKeyProperties::checkDrop);
    return purge && !context.behind().hasBranches()
        ? context.purge(identifier).run()
        : delegate.dropTable(identifier, purge);
  }

  @Override
  public void renameTable(TableIdentifier from, TableIdentifier to) {
    context.checkValueKeys(context.behind().renamed(from), ValueKeyProperties::checkRename);
    super.renameTable(from, to);
  }

  // ---- namespaces

  @Override
  public void createNamespace(Namespace namespace, Map<String, String> metadata) {
    context.namespaceKeys().check(namespace, metadata);
    // Spark adds the owner, which a Hadoop catalog cannot keep; SparkCatalog drops it when it sees
    // one
    boolean dropOwner = context.behind().isHadoop() && metadata.keySet().equals(OWNER_ONLY);
    super.createNamespace(namespace, dropOwner ? Map.of() : metadata);
    context.namespaceKeys().checkKept(namespace, metadata);
  }

  @Override
  public boolean setProperties(Namespace namespace, Map<String, String> newProperties)
      throws NoSuchNamespaceException {
    context.namespaceKeys().check(namespace, newProperties);
    boolean changed = super.setProperties(namespace, newProperties);
    context.namespaceKeys().checkKept(namespace, newProperties);
    return changed;
  }

  // ---- views: a catalog without them has none, and makes none

  @Override
  public View loadView(TableIdentifier identifier) {
    return named(identifier, () -> super.loadView(identifier));
  }

  @Override
  protected View named(TableIdentifier identifier, Supplier<View> behind) {
    return CheckedLoad.checked(context.fullName(identifier), behind);
  }

  /** Closes the catalog behind and the KMS client, whose keys in memory are overwritten. */
  @Override
  public void close() throws IOException {
    close(
        context == null ? null : context.kmsOrNull(), context == null ? null : context.reporter());
  }

  private void close(CachingKmsClient kms, MetricsReporter reporter) throws IOException {
    CloseableGroup reporters = new CloseableGroup();
    reporters.setSuppressCloseFailure(true); // as Iceberg's catalogs close theirs
    if (reporter != null) {
      reporters.addCloseable(reporter);
    }

    try (kms;
        reporters) {
      super.close();
    }
  }

  private void closeAfter(Throwable failure, CachingKmsClient kms, MetricsReporter reporter) {
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
