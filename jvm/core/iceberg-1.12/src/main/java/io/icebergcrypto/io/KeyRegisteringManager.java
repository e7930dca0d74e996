package io.icebergcrypto.io;

import java.util.List;
import java.util.function.Function;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;

/**
 * Iceberg's manager, with the method by which Iceberg 1.12 registers the key metadata of a file:
 * other versions have it under another name.
 */
public abstract class KeyRegisteringManager extends StandardEncryptionManager {
  KeyRegisteringManager(
      List<EncryptedKey> keys, String tableKeyId, int dataKeyLength, KeyManagementClient kms) {
    super(keys, tableKeyId, dataKeyLength, kms);
  }

  /**
   * Registers key metadata, under the lock that guards the keys, and takes over the keys made.
   *
   * @param registration takes the manager to register it with
   */
  abstract <T> T registering(Function<StandardEncryptionManager, T> registration);

  /**
   * Encrypts key metadata with a KEK of a manager, which is made if it does not exist.
   *
   * @return the file's key entry, which the manager then knows, as it knows the KEK
   */
  public static EncryptedKey register(
      StandardEncryptionManager manager, NativeEncryptionKeyMetadata metadata) {
    return manager.registerKeyMetadata(metadata).fileKey();
  }

  /**
   * Encrypts key metadata with the table's newest KEK, or with a new one if that is too old for
   * Iceberg. Iceberg itself would take any KEK that is young enough.
   */
  @Override
  public FileEncryptionKeys registerKeyMetadata(NativeEncryptionKeyMetadata metadata) {
    return registering(other -> other.registerKeyMetadata(metadata));
  }
}
