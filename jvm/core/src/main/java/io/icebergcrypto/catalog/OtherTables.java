package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import java.util.Collection;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NoSuchTableException;

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
   * @throws NotSupportedException when a new table of that name is to be encrypted, or an Iceberg
   *     table of that name is or has keys
   * @throws IcebergCryptoException when that cannot be known
   */
  public void checkNew(TableIdentifier identifier, Map<String, String> properties) {
    checkProperties(identifier, properties.keySet());
    checkName(identifier);
    if (names(identifier)
        .anyMatch(name -> catalog.encryptsNewTable(name.namespace(), properties))) {
      throw new NotSupportedException(
              "a table that is not Iceberg's would be plaintext, and new tables are to be encrypted"
                  + " here",
              "Create an Iceberg table: USING iceberg, or in Python format(\"iceberg\"). Plaintext"
                  + " tables are for a namespace without "
                  + EncryptionProperties.KEY_ID
                  + ", and a catalog that neither gives new tables a key id nor requires one. If a"
                  + " table of another format has this name, take another name, or copy its rows"
                  + " and drop it first."
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
    checkProperties(
        catalog.fullName(identifier),
        properties,
        "Create an Iceberg table: USING iceberg, or in Python format(\"iceberg\").");
  }

  /**
   * The same for a table of a catalog that is not of this project.
   *
   * @param instead how to get an encrypted table, as a sentence
   * @throws InvalidConfigurationException when one of them is about encryption
   */
  public static void checkProperties(
      String tableName, Collection<String> properties, String instead) {
    TreeSet<String> found = new TreeSet<>(properties);
    found.removeIf(name -> !PropertyNames.isOfEncryption(name));
    if (!found.isEmpty()) {
      throw new InvalidConfigurationException(
              String.join(", ", found)
                  + " would do nothing: only Iceberg tables are encrypted with a table's key, and"
                  + " this table's rows would be plaintext",
              instead + " Or leave that out." + NOTHING_CHANGED)
          .inTable(tableName);
    }
  }

  /**
   * Checks that no table of the catalog has a name that must not be lost with it, or be shared.
   *
   * @throws NotSupportedException when an encrypted table has that name, or one with keys
   * @throws IcebergCryptoException when its metadata cannot be read
   */
  public void checkName(TableIdentifier identifier) {
    if (names(identifier).anyMatch(this::hasKeys)) {
      String name = catalog.fullName(identifier);
      throw new NotSupportedException(
              "it is encrypted or has keys, and a plaintext table of another format would take its"
                  + " place",
              String.format(
                  "To write its rows, name the format: USING iceberg, or in Python"
                      + " format(\"iceberg\"). To remove it: DROP TABLE %s.%s",
                  name, NOTHING_CHANGED))
          .inTable(name);
    }
  }

  /**
   * Whether the metastore says that it has no Iceberg table of that name. It says so without the
   * table's metadata: an Iceberg table stays one when that cannot be read.
   *
   * @return false when the catalog is not Hive's
   */
  public boolean isNotIceberg(TableIdentifier identifier) {
    return catalog.behind().isHive() && !catalog.delegate().tableExists(identifier);
  }

  /** As it is written, and in small letters, as Spark's own catalog has it. */
  private static Stream<TableIdentifier> names(TableIdentifier identifier) {
    return Stream.of(identifier, identifier.toLowerCase()).distinct();
  }

  private boolean hasKeys(TableIdentifier identifier) {
    if (!catalog.delegate().tableExists(identifier)) {
      return false;
    }

    try {
      TableMetadata metadata = catalog.unchecked(identifier).operations().current();
      return EncryptionProperties.wasEncrypted(metadata)
          || metadata.properties().keySet().stream().anyMatch(PropertyNames::isOfEncryption);
    } catch (NoSuchTableException e) {
      return false; // dropped meanwhile
    }
  }
}
