package io.icebergcrypto.catalog;

import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.commit.CommitSteps;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.metadata.MetadataFile;
import org.apache.iceberg.TableMetadata;

/**
 * What is checked of a table's metadata before anything is read or written by it: the master keys
 * that it names, before the KMS is asked for one; then that it is genuine. {@link CommitSteps} are
 * those of a commit.
 *
 * @param table the table's full name
 */
record LoadSteps(String table, CatalogSettings settings, MetadataAuthenticator authenticator) {
  /**
   * Checks metadata that the catalog behind loaded for use.
   *
   * @param metadata null: there is no table
   * @throws PlaintextException when the catalog refuses tables without a key id
   * @throws io.icebergcrypto.IcebergCryptoException as {@link #checkGenuine}
   */
  void check(TableMetadata metadata) {
    checkGenuine(metadata);
    if (settings.refusesPlaintextTables()
        && metadata != null
        && EncryptionProperties.keyId(metadata.properties()) == null) {
      throw new PlaintextException(
              String.format(
                  "it has no %s, and the catalog has %s=refuse",
                  EncryptionProperties.KEY_ID, EncryptionProperties.PLAINTEXT_TABLES),
              "If it was encrypted, its metadata was replaced: find out who did it, and restore it."
                  + " If it never was, use it in a catalog without that property.")
          .inTable(table);
    }
  }

  /**
   * Checks that metadata is genuine, as far as the catalog authenticates it.
   *
   * @param metadata null: there is no table
   * @throws io.icebergcrypto.AccessDeniedException when it names a master key that is not allowed
   * @throws io.icebergcrypto.TamperedException when it is not what was committed
   * @throws io.icebergcrypto.InvalidConfigurationException when its master key cannot vouch for it
   */
  void checkGenuine(TableMetadata metadata) {
    settings.allowedKeyIds().check(table, metadata);
    authenticator.check(metadata);
  }

  /** Checks metadata that was registered just now, as that of the file it was registered from. */
  void checkRegistered(TableMetadata metadata, String file) {
    settings.allowedKeyIds().check(table, metadata);
    authenticator.check(metadata, file);
  }

  /** Checks a file that is to become the table's. */
  void check(MetadataFile file) {
    settings.allowedKeyIds().check(table, file.metadata());
    authenticator.check(file);
  }
}
