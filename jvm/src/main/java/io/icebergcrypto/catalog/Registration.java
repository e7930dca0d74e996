package io.icebergcrypto.catalog;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.FileIO;

/** A table that is registered by its metadata file, which may be anybody's. */
final class Registration {
  private final EncryptedCatalog catalog;
  private final TableIdentifier identifier;
  private final String metadataFile;

  Registration(EncryptedCatalog catalog, TableIdentifier identifier, String metadataFile) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.metadataFile = metadataFile;
  }

  /**
   * Registers the table with the catalog behind, after a look at its metadata.
   *
   * @throws InvalidConfigurationException when encryption is required and it has no key id; nothing
   *     was registered
   * @throws TamperedException when its metadata is not genuine; nothing was registered, unless the
   *     file was exchanged just now: the table is then refused at each load
   */
  Table register(boolean overwrite) {
    check();
    Catalog delegate = catalog.delegate();
    Table table =
        overwrite // as a catalog does by default, which knows no other
            ? delegate.registerTable(identifier, metadataFile, true)
            : delegate.registerTable(identifier, metadataFile);
    if (catalog.authenticatesMetadata() && table instanceof BaseTable base) {
      catalog.operations(base.operations(), base.name()).checkRegistered(metadataFile);
    }

    return catalog.decorate(table, identifier);
  }

  private void check() {
    if (!catalog.encryptionRequired() && !catalog.authenticatesMetadata()) {
      return;
    }

    TableMetadata metadata = metadata();
    if (catalog.encryptionRequired() && EncryptionProperties.keyId(metadata.properties()) == null) {
      throw EncryptionProperties.required(
              "Register it in a catalog without this property, and make an encrypted copy with"
                  + " CREATE TABLE ... AS SELECT.")
          .inTable(catalog.fullName(identifier));
    }

    catalog.checkMetadata(identifier, metadata, metadataFile);
  }

  private TableMetadata metadata() {
    try (FileIO io = catalog.newFileIO()) {
      return TableMetadataParser.read(io, metadataFile);
    } catch (RuntimeException e) {
      throw new InvalidConfigurationException(
              String.format(
                  "metadata file %s cannot be read, and the catalog looks at it before a table is"
                      + " registered",
                  metadataFile),
              String.format(
                  "Check the path, and that this client may read it (%s, credentials). Where only"
                      + " the catalog's server may, register the table with a catalog that has no"
                      + " %s.",
                  CatalogProperties.FILE_IO_IMPL, EncryptionProperties.REQUIRED),
              e)
          .inTable(catalog.fullName(identifier));
    }
  }
}
