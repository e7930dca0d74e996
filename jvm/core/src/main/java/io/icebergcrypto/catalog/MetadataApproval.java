package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.metadata.MetadataFile;
import java.util.Map;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.io.FileIO;

/**
 * Metadata that failed its check, was reviewed and found right, and is signed as it is.
 *
 * @param io the table's storage, as the catalog behind has it
 */
record MetadataApproval(String tableName, FileIO io, MetadataAuthenticator authenticator) {
  /**
   * The metadata to be signed: that of the file, with the key id that was removed.
   *
   * @param current the metadata in force
   * @param metadataFile the file that was reviewed
   * @param sha256 the SHA-256 of what was in it, in hex; null asks what that is
   * @throws InvalidConfigurationException when that is not, or no longer, the file in force and its
   *     content
   */
  TableMetadata approved(TableMetadata current, String metadataFile, String sha256) {
    if (!metadataFile.equals(current.metadataFileLocation())) {
      throw new InvalidConfigurationException(
              String.format(
                  "metadata_file is '%s', but its metadata is in '%s'",
                  metadataFile, current.metadataFileLocation()),
              "Review the current file, and name that one if it is right.")
          .inTable(tableName);
    }

    MetadataFile file = MetadataFile.read(io, metadataFile);
    if (sha256 == null || !file.sha256().equalsIgnoreCase(sha256.trim())) {
      throw otherContent(file, sha256);
    }

    if (!authenticator.isOf(file, current)) {
      throw new InvalidConfigurationException(
              String.format("%s was replaced while it was read: nothing was signed", metadataFile),
              "Someone writes to that file: find out who, and review it again.")
          .inTable(tableName);
    }

    return restored(file.metadata());
  }

  private IcebergCryptoException otherContent(MetadataFile file, String sha256) {
    return new InvalidConfigurationException(
            sha256 == null
                ? String.format(
                    "nothing was signed: metadata_sha256 is missing, and %s may no longer be the"
                        + " file that was reviewed",
                    file.location())
                : String.format(
                    "nothing was signed: %s is not the file that was reviewed; its SHA-256 is %s,"
                        + " and metadata_sha256 is %s",
                    file.location(), file.sha256(), sha256),
            String.format(
                "Get a copy of the file, review the copy, and take its sha256sum. If it is right,"
                    + " and its hash is this one: %s.",
                MetadataAuthenticator.callToSign(tableName, file.location(), file.sha256())))
        .inTable(tableName);
  }

  /** Metadata with the key id that was removed. */
  private TableMetadata restored(TableMetadata found) {
    if (EncryptionProperties.keyId(found.properties()) != null) {
      return found;
    }

    String lost = EncryptionProperties.masterKeyId(found);
    if (lost == null) {
      throw new NotSupportedException(
              String.format("it has no %s and no keys left", EncryptionProperties.KEY_ID),
              "Restore the metadata file from a backup or an object version. Without one,"
                  + " docs/metadata-authentication.md says how to register an older file, which"
                  + " lacks the commits since.")
          .inTable(tableName);
    }

    return TableMetadata.buildFrom(found)
        .setProperties(Map.of(EncryptionProperties.KEY_ID, lost))
        .build();
  }
}
