package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import java.util.Collection;
import java.util.Map;
import java.util.TreeSet;
import org.apache.iceberg.catalog.TableIdentifier;

/**
 * Tables of other formats that an engine keeps under the same names as a catalog's, as Spark's
 * session catalog does. Nothing encrypts them with a table's key, so none is created where there
 * would be such a key.
 */
public record OtherTables(CatalogContext catalog) {
  private static final String NOTHING_CHANGED = " Nothing was changed.";

  /**
   * Checks that a table of another format may be created, or may replace one of its name.
   *
   * @param properties those that the statement gives
   * @throws InvalidConfigurationException when one of them is about encryption
   * @throws NotSupportedException when a new table of that name is to be encrypted
   * @throws IcebergCryptoException when that cannot be known
   */
  public void checkNew(TableIdentifier identifier, Map<String, String> properties) {
    checkProperties(identifier, properties.keySet());
    if (catalog.encryptsNewTable(identifier.namespace(), properties)) {
      throw new NotSupportedException(
              "a table that is not Iceberg's would be plaintext, and new tables are to be encrypted"
                  + " here",
              "Create an Iceberg table: USING iceberg, or in Python format(\"iceberg\"). Plaintext"
                  + " tables are for a namespace without "
                  + EncryptionProperties.KEY_ID
                  + ", and a catalog that neither gives new tables a key id nor requires one."
                  + NOTHING_CHANGED)
          .inTable(catalog.fullName(identifier));
    }
  }

  /**
   * Checks the names of properties that a table of another format is to get.
   *
   * @throws InvalidConfigurationException when one of them is about encryption
   */
  public void checkProperties(TableIdentifier identifier, Collection<String> properties) {
    TreeSet<String> found = new TreeSet<>(properties);
    found.removeIf(name -> !PropertyNames.isOfEncryption(name));
    if (!found.isEmpty()) {
      throw new InvalidConfigurationException(
              String.join(", ", found)
                  + " would do nothing: only Iceberg tables are encrypted with a table's key, and"
                  + " this table's rows would be plaintext",
              "Create an Iceberg table: USING iceberg, or in Python format(\"iceberg\"). Or leave"
                  + " that out."
                  + NOTHING_CHANGED)
          .inTable(catalog.fullName(identifier));
    }
  }
}
