package io.icebergcrypto.catalog;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.behind.CatalogBehind;
import io.icebergcrypto.commit.TableKeys;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.integrity.CatalogTrust;
import io.icebergcrypto.integrity.MetadataAuthentication;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.integrity.SigningKeys;
import io.icebergcrypto.io.EncryptionManagerFactory;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.metadata.HashMismatchRetry;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.iceberg.BaseMetadataTable;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.MetadataTableType;
import org.apache.iceberg.MetadataTableUtils;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.metrics.MetricsReporter;

/**
 * What the tables of one catalog share, and how they are made of those of the catalog behind.
 *
 * @param name the name that the catalog was given
 * @param settings what its properties say
 * @param behind the catalog behind
 * @param kmsOrNull the one KMS client; null when the catalog names no KMS
 * @param managers makes the encryption managers of tables
 * @param reporter the metrics reporter of tables that are being created
 * @param authenticatesMetadata whether the metadata of encrypted tables is authenticated
 */
record CatalogContext(
    String name,
    CatalogSettings settings,
    CatalogBehind behind,
    CachingKmsClient kmsOrNull,
    EncryptionManagerFactory managers,
    MetricsReporter reporter,
    boolean authenticatesMetadata) {

  /**
   * Makes the context of one catalog.
   *
   * @throws InvalidConfigurationException when the settings do not fit the catalog behind
   */
  static CatalogContext of(
      String name,
      CatalogSettings settings,
      CatalogBehind behind,
      CachingKmsClient kmsOrNull,
      EncryptionManagerFactory managers,
      MetricsReporter reporter) {
    boolean authenticates = CatalogTrust.authenticatesMetadata(behind.catalog(), settings);
    return new CatalogContext(name, settings, behind, kmsOrNull, managers, reporter, authenticates);
  }

  /** The catalog behind. */
  Catalog delegate() {
    return behind.catalog();
  }

  /** The KMS client; see {@link EncryptedCatalog#kms()}. */
  CachingKmsClient kms() {
    if (kmsOrNull == null) {
      throw KmsClients.notConfigured().inCatalog(name);
    }

    return kmsOrNull;
  }

  AllowedKeyIds allowedKeyIds() {
    return settings.allowedKeyIds();
  }

  /** The properties that a new table gets, with the catalog's defaults and overrides. */
  Map<String, String> propertiesOfNewTable(Map<String, String> own) {
    return EncryptionProperties.ofNewTable(behind.properties(), own);
  }

  String fullName(TableIdentifier identifier) {
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
    return new EncryptedTableOperations(
        ops,
        new TableKeys(table, managers, this::kms),
        authenticator(table, ops, this::kms),
        settings,
        behind,
        this::kms);
  }

  /** The same, with metadata checked by another client. */
  EncryptedTableOperations operations(
      TableOperations ops, String table, KeyManagementClient checks) {
    return operations(ops, table).checkedBy(authenticator(table, ops, () -> checks));
  }

  /** A table of metadata that no catalog has: see {@link EncryptedCatalog#uncommitted}. */
  EncryptedTable uncommitted(TableOperations ops, String table) {
    EncryptedTableOperations operations =
        new EncryptedTableOperations(
            ops,
            new TableKeys(table, managers, this::kms),
            MetadataAuthenticator.off(
                new MetadataAuthentication(false, "the metadata is not committed yet")),
            settings,
            behind,
            this::kms);
    return new EncryptedTable(operations, new BaseTable(ops, table, reporter), table);
  }

  private MetadataAuthenticator authenticator(
      String table, TableOperations ops, Supplier<? extends KeyManagementClient> client) {
    return authenticatesMetadata
        ? MetadataAuthenticator.of(
            table, ops, behind.isHadoop(), client, CatalogTrust.setOnLoad(delegate()))
        : MetadataAuthenticator.off(CatalogTrust.withoutAuthentication(delegate()));
  }

  /** Checks a table of the catalog behind: its key id, and metadata that is authenticated. */
  void checkMetadata(Table table) {
    if (table instanceof BaseTable base) {
      checkMetadata(base, this::kms);
    }
  }

  /**
   * The same, with keys from another client.
   *
   * @return whether the metadata is authenticated
   */
  MetadataAuthentication checkMetadata(
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

  /** See {@link EncryptedCatalog#signedFor}. */
  TableMetadata signedFor(BaseTable table, String file, TableMetadata metadata) {
    return authenticator(table.name(), table.operations(), this::kms).signFor(file, metadata);
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

  /** Loads a table of the catalog behind, decorated. */
  Table load(TableIdentifier identifier) {
    return load(identifier, () -> delegate().loadTable(identifier));
  }

  /** The same, by another call of the catalog behind. */
  Table load(TableIdentifier identifier, Supplier<Table> load) {
    return decorate(HashMismatchRetry.checked(fullName(identifier), load), identifier);
  }

  /** The table as this catalog gives it: with encryption, and a guard on its commits. */
  Table decorate(Table table, TableIdentifier identifier) {
    if (table instanceof BaseMetadataTable metadataTable) {
      return metadataTable(metadataTable.table(), identifier);
    }

    if (table instanceof BaseTable base) {
      String tableName = fullName(identifier);
      return new EncryptedTable(operations(base.operations(), tableName), base, tableName);
    }

    if (EncryptionProperties.keyId(table.properties()) != null) {
      throw new NotSupportedException(
              String.format(
                  "it is encrypted, and catalog class %s gives tables of a class that cannot be"
                      + " decorated: %s",
                  delegate().getClass().getName(), table.getClass().getName()),
              "Use a catalog whose tables are org.apache.iceberg.BaseTable.")
          .inTable(fullName(identifier));
    }

    return table;
  }

  /**
   * The catalog behind would read manifests without keys: built anew on the decorated table.
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
}
