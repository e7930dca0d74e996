package io.icebergcrypto.catalog;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Map;
import java.util.Objects;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.io.FileIO;

/** A table that is registered by its metadata file, which may be anyone's. */
record Registration(CatalogContext catalog, TableIdentifier identifier, String metadataFile) {
  /**
   * Registers the table with the catalog behind, after a look at its metadata and at the table that
   * it is to replace.
   *
   * @throws InvalidConfigurationException when encryption is required and it has no key id, when it
   *     has properties of encryption that no table may have, or when it is to replace an encrypted
   *     table and cannot be read; nothing was registered
   * @throws NotSupportedException when it would replace an encrypted table by another one, or by
   *     one with another key id or none; nothing was registered
   * @throws AccessDeniedException when the catalog does not allow its key id; nothing was
   *     registered
   * @throws TamperedException when its metadata is not genuine; nothing was registered, unless the
   *     file was exchanged just now: the table is then refused at each load
   */
  Table register(boolean overwrite) {
    BaseTable target = overwrite ? encryptedTarget() : null;
    TableMetadata replaced = target == null ? null : target.operations().current();
    check(target);
    Catalog delegate = catalog.delegate();
    Table table =
        overwrite // as a catalog does by default, which knows no other
            ? delegate.registerTable(identifier, metadataFile, true)
            : delegate.registerTable(identifier, metadataFile);
    if (replaced != null && table instanceof BaseTable base) {
      checkRegistered(replaced, base.operations().current());
    }

    if (catalog.authenticatesMetadata() && table instanceof BaseTable base) {
      catalog
          .operations(base.operations(), catalog.fullName(identifier))
          .checkRegistered(metadataFile);
    }

    return catalog.decorate(table, identifier);
  }

  /** The file may have been exchanged before the catalog behind read it. */
  private void checkRegistered(TableMetadata replaced, TableMetadata registered) {
    try {
      checkReplaces(replaced, registered);
      checkProperties(registered);
    } catch (IcebergCryptoException e) {
      throw new TamperedException(
              String.format(
                  "metadata file %s was replaced while it was registered, and the table is now what"
                      + " it says: %s",
                  metadataFile, e.problem()),
              String.format(
                  "Find out who did that, and let nobody write to the table. Its metadata file was"
                      + " %s: register that one over it, or under another name.",
                  replaced.metadataFileLocation()))
          .inTable(catalog.fullName(identifier));
    }
  }

  /** The encrypted table to be replaced, as the catalog behind has it; null for none. */
  private BaseTable encryptedTarget() {
    try {
      Table target = catalog.delegate().loadTable(identifier);
      return target instanceof BaseTable base
              && EncryptionProperties.wasEncrypted(base.operations().current())
          ? base
          : null;
    } catch (NoSuchTableException e) {
      return null;
    }
  }

  private void check(BaseTable target) {
    boolean required =
        target != null
            || catalog.settings().encryptionRequired()
            || catalog.authenticatesMetadata()
            || catalog.allowedKeyIds().limited();
    MetadataFile file;
    TableMetadata metadata;
    try {
      file = read(target);
      metadata = file.metadata();
    } catch (RuntimeException | LinkageError e) {
      if (required) {
        throw unreadable(target != null, e);
      }

      return; // only the catalog's server may read it: tables are checked when they are used
    }

    if (target != null) {
      checkReplaces(target.operations().current(), metadata);
    }

    checkProperties(metadata);
    catalog.checkMetadata(identifier, file);
  }

  /** Reads the file, with a server's credentials where a table has some. */
  private MetadataFile read(BaseTable target) {
    if (target != null) {
      return MetadataFile.read(TableFileIO.storageBelow(target.io()), metadataFile);
    }

    try (FileIO io = catalog.behind().newFileIO()) {
      return MetadataFile.read(io, metadataFile);
    }
  }

  private void checkReplaces(TableMetadata target, TableMetadata metadata) {
    String name = catalog.fullName(identifier);
    if (!Objects.equals(target.uuid(), metadata.uuid())) {
      throw new NotSupportedException(
              String.format(
                  "metadata file %s is another table's (UUID %s): registering it would replace an"
                      + " encrypted table (UUID %s)",
                  metadataFile, metadata.uuid(), target.uuid()),
              String.format(
                  "Register it under another name. Or, to give the encrypted table up, DROP TABLE"
                      + " %s first.",
                  name))
          .inTable(name);
    }

    String keyId = EncryptionProperties.keyId(target.properties());
    String known = keyId != null ? keyId : EncryptionProperties.masterKeyId(target);
    String wanted = EncryptionProperties.keyId(metadata.properties());
    if (known != null && !known.equals(wanted)) {
      throw new NotSupportedException(
              String.format(
                  "metadata file %s has %s: registering it would replace a table that is encrypted"
                      + " with '%s'",
                  metadataFile,
                  wanted == null
                      ? "no " + EncryptionProperties.KEY_ID
                      : EncryptionProperties.KEY_ID + " '" + wanted + "'",
                  known),
              "Register it under another name. The two tables then share files: purge neither, and"
                  + " do not drop this one for it.")
          .inTable(name);
    }

    ValueKeyProperties.checkRegistered(name, target.properties(), metadata.properties());
  }

  private void checkProperties(TableMetadata metadata) {
    String name = catalog.fullName(identifier);
    Map<String, String> properties = metadata.properties();
    PropertyNames.checkRegistered(name, properties);
    if (EncryptionProperties.keyId(properties) != null) {
      EncryptionProperties.refuseLaterFormat(name, metadata.formatVersion());
      try {
        EncryptionProperties.check(name, Map.of(), properties);
      } catch (IcebergCryptoException e) {
        throw e.withHint("Nothing was registered: an earlier metadata file may be right.");
      }
    } else if (EncryptionProperties.wasEncrypted(metadata)) {
      String lost = EncryptionProperties.masterKeyId(metadata);
      throw new TamperedException(
              String.format(
                  "metadata file %s has keys and no %s%s: a client without encryption,"
                      + " or someone with access to the metadata, removed it",
                  metadataFile,
                  EncryptionProperties.KEY_ID,
                  lost == null ? "" : " (it was '" + lost + "')"),
              "Nothing was registered. An earlier metadata file of the table still has it, but"
                  + " lacks the commits since: look for the newest one that has it, and copy what"
                  + " later commits added.")
          .inTable(name);
    } else if (catalog.settings().encryptionRequired()) {
      throw EncryptionProperties.required(
              "Register it in a catalog without this property, and call encrypt_table there.")
          .inTable(name);
    }
  }

  private IcebergCryptoException unreadable(boolean replaces, Throwable e) {
    return new InvalidConfigurationException(
            String.format(
                "metadata file %s cannot be read, which is needed before %s",
                metadataFile,
                replaces ? "an encrypted table is replaced" : "a table is registered"),
            String.format(
                "Check the path, and that this client may read it (%s, credentials).%s",
                CatalogProperties.FILE_IO_IMPL,
                replaces || catalog.authenticatesMetadata()
                    ? ""
                    : " If only the catalog's server may, register the table with a catalog that"
                        + " has no "
                        + EncryptionProperties.REQUIRED
                        + " and no "
                        + EncryptionProperties.ALLOWED_KEY_IDS
                        + "."),
            e)
        .inTable(catalog.fullName(identifier));
  }
}
