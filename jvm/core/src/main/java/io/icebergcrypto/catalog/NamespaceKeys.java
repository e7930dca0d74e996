package io.icebergcrypto.catalog;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.PropertyNames;
import io.icebergcrypto.config.SqlNames;
import java.util.Arrays;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;

/**
 * The master keys that namespaces give to new tables: a namespace's property {@code
 * encryption.key-id} is for the tables in it and in the namespaces below it that have none of their
 * own. What a CREATE statement says goes before it, the catalog's {@code table-default.} comes
 * after it.
 */
public record NamespaceKeys(CatalogContext catalog) {
  /**
   * What a namespace gives to a new table.
   *
   * @param namespace the one that has the property
   */
  record Default(Namespace namespace, String keyId) {}

  /**
   * Asks the catalog behind, once for each level up to the namespace that has a key.
   *
   * @return null when none has
   * @throws InvalidConfigurationException when one has a misspelt property instead, which another
   *     client set
   */
  Default of(Namespace namespace) {
    for (int levels = namespace.length(); levels > 0; levels--) {
      Namespace at = Namespace.of(Arrays.copyOf(namespace.levels(), levels));
      Map<String, String> properties = properties(at);
      String keyId = EncryptionProperties.keyId(properties);
      if (keyId != null) {
        return new Default(at, keyId);
      }

      PropertyNames.checkStoredNamespace(fullName(at), properties);
    }

    return null;
  }

  /**
   * What gives new tables another master key than a wanted one.
   *
   * @param name the namespace with the property, or the catalog
   * @param hint how to change that
   */
  public record Another(String name, String problem, String hint) {}

  /**
   * Looks for what gives new tables of a namespace another master key, when the statement names
   * none.
   *
   * @param namespace the empty one stands for the catalog
   * @return null when nothing does
   * @throws InvalidConfigurationException when a namespace has a misspelt property instead
   * @throws AccessDeniedException when its properties may not be read
   */
  public Another another(Namespace namespace, String keyId) {
    Map<String, String> ofCatalog = catalog.behind().properties();
    String override = CatalogProperties.TABLE_OVERRIDE_PREFIX + EncryptionProperties.KEY_ID;
    if (ofCatalog.containsKey(override)) {
      return another(Namespace.empty(), override, ofCatalog.get(override), keyId, null);
    }

    Namespace changeable = catalog.behind().keepsNamespaceProperties() ? namespace : null;
    Default own = of(namespace);
    if (own != null) {
      return another(own.namespace(), EncryptionProperties.KEY_ID, own.keyId(), keyId, changeable);
    }

    String byDefault = CatalogProperties.TABLE_DEFAULT_PREFIX + EncryptionProperties.KEY_ID;
    return another(Namespace.empty(), byDefault, ofCatalog.get(byDefault), keyId, changeable);
  }

  /**
   * The same of one property.
   *
   * @param of the namespace that has it; the empty one stands for the catalog
   * @param changeable the namespace whose property would go before it; null: none would
   */
  private Another another(
      Namespace of, String property, String value, String wanted, Namespace changeable) {
    if (value == null || value.equals(wanted)) {
      return null;
    }

    String hint =
        changeable == null || changeable.isEmpty()
            ? String.format("Set %s where the catalog, or its server, is configured.", property)
            : String.format(
                "ALTER NAMESPACE %s SET PROPERTIES ('%s'='%s').",
                fullName(changeable), EncryptionProperties.KEY_ID, wanted);
    return new Another(
        fullName(of),
        String.format("its %s gives new tables master key '%s'", property, value),
        hint);
  }

  private Map<String, String> properties(Namespace namespace) {
    if (!catalog.behind().keepsNamespaceProperties()) {
      return Map.of();
    }

    try {
      return ((SupportsNamespaces) catalog.delegate()).loadNamespaceMetadata(namespace);
    } catch (NoSuchNamespaceException | UnsupportedOperationException e) {
      return Map.of(); // the catalog behind knows whether a table can be there
    } catch (ForbiddenException e) {
      throw new AccessDeniedException(
              String.format(
                  "its properties may not be read (%s), and a new table would take its %s",
                  e.getMessage(), EncryptionProperties.KEY_ID),
              String.format(
                  "Let this login read the namespace, or give '%s' in the statement.",
                  EncryptionProperties.KEY_ID),
              e)
          .inNamespace(fullName(namespace));
    }
  }

  /**
   * Checks properties that a namespace is to get, and tries the master key.
   *
   * @throws InvalidConfigurationException when one below {@code encryption.} means nothing, or the
   *     key id is empty
   * @throws NotSupportedException when the catalog behind keeps no properties of namespaces
   * @throws IcebergCryptoException when the key is not allowed, or cannot be used
   */
  public void check(Namespace namespace, Map<String, String> given) {
    PropertyNames.checkNamespace(fullName(namespace), given);
    String keyId = EncryptionProperties.keyId(given);
    if (keyId == null) {
      return;
    }

    try {
      if (keyId.isBlank()) {
        throw new InvalidConfigurationException(
            String.format("%s is empty", EncryptionProperties.KEY_ID),
            "Give the id of a master key in the KMS, or leave the property out.");
      }

      if (!catalog.behind().keepsNamespaceProperties()) {
        throw notKept("was not set: this kind of catalog keeps no properties of namespaces");
      }

      if (!catalog.allowedKeyIds().allows(keyId)) {
        throw catalog.allowedKeyIds().refused(keyId);
      }

      catalog.kms().check(keyId);
    } catch (IcebergCryptoException e) {
      throw e.inNamespace(fullName(namespace));
    }
  }

  /**
   * Checks that the catalog behind has what a namespace was given: some catalogs drop properties in
   * silence, and tables would be plaintext.
   *
   * @throws NotSupportedException when it has not
   */
  public void checkKept(Namespace namespace, Map<String, String> given) {
    String keyId = EncryptionProperties.keyId(given);
    if (keyId != null && !keyId.equals(EncryptionProperties.keyId(properties(namespace)))) {
      throw notKept(
              String.format(
                  "was not kept: the catalog of the tables (%s) does not have it. The namespace"
                      + " itself is there",
                  catalog.delegate().getClass().getName()))
          .inNamespace(fullName(namespace));
    }
  }

  private static NotSupportedException notKept(String problem) {
    return new NotSupportedException(
        EncryptionProperties.KEY_ID + " " + problem,
        String.format(
            "Give '%s' to each table, or set %s%s for the whole catalog.",
            EncryptionProperties.KEY_ID,
            CatalogProperties.TABLE_DEFAULT_PREFIX,
            EncryptionProperties.KEY_ID));
  }

  private String fullName(Namespace namespace) {
    return SqlNames.full(catalog.name(), namespace);
  }
}
