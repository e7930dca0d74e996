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
public final class NamespaceKeys {
  private final CatalogContext catalog;

  NamespaceKeys(CatalogContext catalog) {
    this.catalog = catalog;
  }

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
