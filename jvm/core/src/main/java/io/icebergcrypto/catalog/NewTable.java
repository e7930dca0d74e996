package io.icebergcrypto.catalog;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.commit.KeyIdRule;
import io.icebergcrypto.commit.OwnProperties;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.integrity.AuthenticatedFolder;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.metadata.CheckedLoad;
import io.icebergcrypto.metadata.UnwrappedKek;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.Catalog.TableBuilder;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.NoSuchTableException;

/**
 * What is asked for when a table is created or replaced. All that can be wrong with it is found
 * here, before the catalog behind is asked and before a file is written: its properties, and
 * whether its master key can be used.
 */
final class NewTable {
  private final CatalogContext catalog;
  private final TableIdentifier identifier;
  private final String tableName;
  private final TableBuilder delegate;
  private final Map<String, String> properties = new HashMap<>();
  private boolean askedNamespace;
  private NamespaceKeys.Default fromNamespace;

  /**
   * Begins without properties.
   *
   * @param delegate the builder of the catalog behind, which gets the properties that are added
   */
  NewTable(CatalogContext catalog, TableIdentifier identifier, TableBuilder delegate) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.tableName = catalog.fullName(identifier);
    this.delegate = delegate;
  }

  /**
   * Properties without those that commits of another table made, as in a copy of all of its
   * properties: with them, this one's metadata would be in the folder of that one, which is cleaned
   * up with that one.
   */
  static Map<String, String> withoutAnothers(Map<String, String> given) {
    Map<String, String> own = given == null ? new HashMap<>() : new HashMap<>(given);
    own.remove(EncryptionProperties.METADATA_MAC);
    if (AuthenticatedFolder.isOfAnother(own.get(TableProperties.WRITE_METADATA_LOCATION), null)) {
      own.remove(TableProperties.WRITE_METADATA_LOCATION);
    }

    return own;
  }

  /** Takes properties that the catalog behind was given. */
  void given(Map<String, String> more) {
    properties.putAll(more);
  }

  private void add(String property, String value) {
    delegate.withProperty(property, value);
    properties.put(property, value);
  }

  /**
   * Checks the properties of a new table and the use of its master key.
   *
   * @return the key id, or null for a table that is not encrypted
   */
  String prepare() {
    takeNamespaceKey();
    try {
      return preparedNewTable();
    } catch (IcebergCryptoException e) {
      throw withNamespace(e);
    }
  }

  private String preparedNewTable() {
    Map<String, String> all = catalog.propertiesOfNewTable(properties);
    PropertyNames.checkTable(tableName, Map.of(), all);
    OwnProperties.check(tableName, Map.of(), all);
    String keyId = EncryptionProperties.keyId(all);
    if (keyId == null) {
      refuseIfRequired(
          String.format(
              "Add TBLPROPERTIES ('%s'='<master key id>'), or set the namespace property %s or the"
                  + " catalog property table-default.%s.",
              EncryptionProperties.KEY_ID,
              EncryptionProperties.KEY_ID,
              EncryptionProperties.KEY_ID));
      return null;
    }

    EncryptionProperties.check(tableName, Map.of(), all);
    if (EncryptionProperties.needsFormatVersion(tableName, all)) {
      delegate.withProperty(TableProperties.FORMAT_VERSION, "3");
    }

    try {
      catalog.checkMasterKey(tableName, keyId);
      tryMasterKey(keyId);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }

    return keyId;
  }

  /**
   * Gives the table the key of its namespace, where the statement names none and the catalog does
   * not overrule all. Costs a call of the catalog behind, so that is all it is asked for.
   */
  private void takeNamespaceKey() {
    if (askedNamespace
        || properties.containsKey(EncryptionProperties.KEY_ID)
        || catalog
            .behind()
            .properties()
            .containsKey(CatalogProperties.TABLE_OVERRIDE_PREFIX + EncryptionProperties.KEY_ID)) {
      return;
    }

    this.fromNamespace = new NamespaceKeys(catalog).of(identifier.namespace());
    this.askedNamespace = true;
    if (fromNamespace != null) {
      add(EncryptionProperties.KEY_ID, fromNamespace.keyId());
    }
  }

  /** Says where the key id comes from, if not from the statement. */
  private IcebergCryptoException withNamespace(IcebergCryptoException e) {
    return fromNamespace == null
        ? e
        : e.withHint(
            String.format(
                "%s='%s' is a property of namespace %s.",
                EncryptionProperties.KEY_ID, fromNamespace.keyId(), fromNamespace.namespace()));
  }

  private void refuseIfRequired(String hint) {
    if (catalog.settings().encryptionRequired()) {
      throw EncryptionProperties.required(hint).inTable(tableName);
    }
  }

  /**
   * The table to be replaced, or null. Its properties say whether the new files are to be
   * encrypted: they must be genuine.
   */
  Table existing() {
    try {
      Table table = CheckedLoad.checked(tableName, () -> catalog.delegate().loadTable(identifier));
      if (table instanceof BaseTable base) {
        catalog.checkMetadata(base);
        if (EncryptionProperties.keyId(base.properties()) == null) {
          KeyIdRule.refuseLost(tableName, base.operations().current(), null);
        }
      }

      return table;
    } catch (NoSuchTableException e) {
      return null;
    }
  }

  /**
   * Checks the properties of a table's replacement. What the statement does not name stays as the
   * table has it, regardless of the catalog's defaults for new tables.
   *
   * @return the key id, or null for a table that is not encrypted
   */
  String prepareReplacement(Table table) {
    Map<String, String> before = table.properties();
    if (EncryptionProperties.keyId(before) != null) {
      for (String property : EncryptionProperties.OF_TABLES) {
        String value = before.get(property);
        if (value != null && !properties.containsKey(property)) {
          add(property, value);
        }
      }
    }

    takeNamespaceKey();
    Map<String, String> after = new HashMap<>(before);
    after.putAll(catalog.propertiesOfNewTable(properties));
    PropertyNames.checkTable(tableName, before, after);
    OwnProperties.check(tableName, before, after);
    try {
      KeyIdRule.check(tableName, true, before, after);
    } catch (IcebergCryptoException e) {
      throw withNamespace(e);
    }

    String keyId = EncryptionProperties.keyId(after);
    if (keyId == null) {
      refuseIfRequired("It was created without encryption: encrypt_table encrypts it in place.");
    } else {
      EncryptionProperties.check(tableName, before, after);
      EncryptionProperties.needsFormatVersion(tableName, after);
      tryKey(table, keyId);
    }

    return keyId;
  }

  /**
   * Tries the key that the replacement's commit needs, before a file is written: Iceberg leaves the
   * manifests of a replacement that fails at its end. A KEK stays in the cache until then.
   */
  private void tryKey(Table table, String keyId) {
    TableMetadata metadata = ((HasTableOperations) table).operations().current();
    Optional<EncryptedKey> kek =
        metadata.encryptionKeys().stream()
            .filter(key -> keyId.equals(key.encryptedById()))
            .findFirst();
    try {
      if (kek.isPresent()) {
        ByteBuffer key =
            CallContext.forTable(
                tableName,
                metadata.uuid(),
                () -> UnwrappedKek.of(kek.get(), metadata.encryptionKeys(), catalog.kms()));
        if (key.hasArray()) {
          Arrays.fill(key.array(), (byte) 0); // a copy
        }
      } else {
        tryMasterKey(keyId);
      }
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }

  private void tryMasterKey(String keyId) {
    CallContext.forTable(
        tableName,
        () -> {
          catalog.kms().check(keyId);
          return null;
        });
  }
}
