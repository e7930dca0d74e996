package io.icebergcrypto.catalog;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.ResolvingFileIO;

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
   * Registers the table with the catalog behind.
   *
   * @throws InvalidConfigurationException when encryption is required and it has no key id
   * @throws TamperedException when its metadata is not genuine; it is registered no more
   */
  Table register(boolean overwrite) {
    checkRequired();
    Catalog delegate = catalog.delegate();
    Table table =
        overwrite // as a catalog does by default, which knows no other
            ? delegate.registerTable(identifier, metadataFile, true)
            : delegate.registerTable(identifier, metadataFile);
    if (catalog.authenticatesMetadata() && table instanceof BaseTable base) {
      checkMetadata(base, overwrite);
    }

    return catalog.decorate(table, identifier);
  }

  private void checkMetadata(BaseTable table, boolean overwritten) {
    try {
      catalog.operations(table.operations(), table.name()).checkRegistered(metadataFile);
    } catch (TamperedException e) {
      // a Hadoop catalog drops the folder, which must not be the one that holds the file
      String copied = table.operations().current().metadataFileLocation();
      boolean sameFolder =
          MetadataCode.Place.folderOf(copied).equals(MetadataCode.Place.folderOf(metadataFile));
      if (!overwritten && !(catalog.delegate() instanceof HadoopCatalog && sameFolder)) {
        catalog.delegate().dropTable(identifier, false);
      }

      throw e;
    }
  }

  /** Where encryption is required, what is registered must be encrypted: its metadata tells. */
  private void checkRequired() {
    if (catalog.encryptionRequired() && keyId() == null) {
      throw EncryptionProperties.required(
              "Register it in a catalog without this property, and make an encrypted copy with"
                  + " CREATE TABLE ... AS SELECT.")
          .inTable(catalog.fullName(identifier));
    }
  }

  private String keyId() {
    Map<String, String> properties = catalog.propertiesInForce();
    String impl =
        properties.getOrDefault(CatalogProperties.FILE_IO_IMPL, ResolvingFileIO.class.getName());
    try (FileIO io = CatalogUtil.loadFileIO(impl, properties, catalog.conf())) {
      return EncryptionProperties.keyId(TableMetadataParser.read(io, metadataFile).properties());
    } catch (RuntimeException e) {
      throw new InvalidConfigurationException(
              String.format(
                  "metadata file %s cannot be read, and the catalog has %s=true",
                  metadataFile, EncryptionProperties.REQUIRED),
              "Check the path. Where only the catalog's server may read it, register the table with"
                  + " a catalog that has no "
                  + EncryptionProperties.REQUIRED
                  + ".",
              e)
          .inTable(catalog.fullName(identifier));
    }
  }
}
