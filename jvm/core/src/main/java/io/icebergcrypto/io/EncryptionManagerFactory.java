package io.icebergcrypto.io;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.common.DynConstructors;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Makes the encryption manager of a table. The catalog property {@code encryption.manager-impl}
 * names a class with a no-argument constructor; the default is {@link TableEncryptionManager}'s
 * own.
 */
public interface EncryptionManagerFactory {
  /**
   * The factory that a catalog's properties name.
   *
   * @throws InvalidConfigurationException when there is no such class
   */
  static EncryptionManagerFactory load(Map<String, String> catalogProperties) {
    String impl = catalogProperties.get(EncryptionProperties.MANAGER_IMPL);
    if (impl == null) {
      return TableEncryptionManager::new;
    }

    try {
      EncryptionManagerFactory factory =
          DynConstructors.builder(EncryptionManagerFactory.class)
              .loader(Thread.currentThread().getContextClassLoader())
              .impl(impl)
              .<EncryptionManagerFactory>buildChecked()
              .newInstance();
      factory.initialize(catalogProperties);
      return factory;
    } catch (NoSuchMethodException | ClassCastException e) {
      throw new InvalidConfigurationException(
          String.format(
              "%s=%s cannot be used: no class of this name with a no-argument constructor that"
                  + " implements EncryptionManagerFactory is on the class path",
              EncryptionProperties.MANAGER_IMPL, impl),
          "Check the spelling, and that the class's jar is in spark.jars; or leave the property"
              + " out.",
          e);
    }
  }

  /**
   * Takes the catalog's properties, once, before the first table.
   *
   * @param catalogProperties the catalog's properties
   */
  default void initialize(Map<String, String> catalogProperties) {}

  /**
   * Makes the manager of one table.
   *
   * @param tableName the table's full name, for errors
   * @param keys the table's {@code encryption-keys}: wrapped KEKs and encrypted manifest list keys
   * @param tableKeyId the table's {@code encryption.key-id}, a master key in the KMS
   * @param dataKeyLength the length of DEKs and KEKs in bytes: 16, 24 or 32
   * @param kms wraps and unwraps KEKs
   * @return a manager that extends Iceberg's StandardEncryptionManager
   */
  TableEncryptionManager create(
      String tableName,
      List<EncryptedKey> keys,
      String tableKeyId,
      int dataKeyLength,
      KeyManagementClient kms);
}
