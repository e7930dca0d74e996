package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyIdRule;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.kms.CachingKmsClient;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;

/** A plaintext table to be encrypted, as the catalog behind has it, and the key for it. */
public record PlaintextTable(
    EncryptedCatalog catalog, TableIdentifier identifier, BaseTable table, String keyId) {

  /**
   * Loads the table, and checks all that can be checked before a file is read.
   *
   * @throws InvalidConfigurationException when the key id is empty, or the table has a property
   *     that an encrypted one may not have
   * @throws NotSupportedException when it is encrypted already, or has no metadata of its own, or
   *     when the catalog's server does not keep key ids
   * @throws IcebergCryptoException when the catalog or the KMS do not give the key
   */
  public static PlaintextTable load(
      EncryptedCatalog catalog, TableIdentifier identifier, String keyId) {
    catalog.loadTable(identifier).properties(); // refuses what the commit would refuse in the end
    BaseTable table = catalog.context().unchecked(identifier);
    PlaintextTable plaintext = new PlaintextTable(catalog, identifier, table, keyId);
    TableMetadata metadata = plaintext.refreshed();
    if (keyId.isBlank()) {
      throw new InvalidConfigurationException(
              "the key id is empty", "Give the id of a master key in the KMS.")
          .inTable(table.name());
    }

    Map<String, String> after = new HashMap<>(metadata.properties());
    after.putAll(EncryptedForm.properties(metadata.properties(), keyId));
    EncryptionProperties.check(table.name(), Map.of(), after);
    EncryptionProperties.refuseLaterFormat(table.name(), metadata.formatVersion());
    catalog.context().checkMasterKey(table.name(), keyId);
    CachingKmsClient kms = catalog.context().kms();
    try {
      kms.check(keyId);
    } catch (IcebergCryptoException e) {
      throw e.inTable(table.name());
    }

    catalog.context().behind().checkKeepsKeyId(identifier, table.name(), table.schema(), keyId);
    return plaintext;
  }

  /** The table's full name. */
  public String name() {
    return table.name();
  }

  /**
   * The metadata in force.
   *
   * @throws NotSupportedException when it is encrypted: it was before, or another run was faster
   */
  public TableMetadata refreshed() {
    TableMetadata metadata = table.operations().refresh();
    if (metadata == null) {
      throw new NoSuchTableException("Table does not exist: %s", table.name());
    }

    String now = EncryptionProperties.keyId(metadata.properties());
    if (now != null) {
      throw new NotSupportedException(
              String.format("it is already encrypted, with key '%s'", now),
              String.format(
                  "Nothing was changed by this call. %s proves it; rotate_master_key gives it"
                      + " another key.",
                  SqlNames.call("verify_encryption", table.name())))
          .inTable(table.name());
    }

    KeyIdRule.refuseLost(table.name(), metadata, null);
    return metadata;
  }
}
