package io.icebergcrypto.io;

import java.util.List;
import java.util.Map;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Makes the encryption manager of a table. The catalog property {@code encryption.manager-impl}
 * names a class with a no-argument constructor; the default is {@link TableEncryptionManager}'s
 * own.
 */
public interface EncryptionManagerFactory {
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
