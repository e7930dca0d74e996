package io.icebergcrypto.metadata;

import java.io.Serializable;
import java.nio.ByteBuffer;
import org.apache.iceberg.ManifestListFile;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.EncryptionManager;
import org.apache.iceberg.encryption.EncryptionUtil;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.InputFile;

/**
 * A file whose key metadata is an entry of the metadata's {@code encryption-keys}, as Iceberg
 * decrypts it: a manifest list, or a statistics file, whose entry is alike.
 *
 * @param location the file's path
 * @param encryptionKeyID the id of the entry
 */
public record KeyedFile(String location, String encryptionKeyID)
    implements ManifestListFile, Serializable {
  private static final InputFile NO_FILE = new InMemoryInputFile(new byte[0]);

  @Override
  public ByteBuffer decryptKeyMetadata(EncryptionManager em) {
    return EncryptionUtil.decryptManifestListKeyMetadata(this, em);
  }

  /**
   * The key metadata in an entry.
   *
   * @param keyId the id of the entry
   * @throws RuntimeException Iceberg's own, of any type, when it does not decrypt
   */
  public static NativeEncryptionKeyMetadata decrypted(
      String keyId, StandardEncryptionManager manager) {
    return parsed(new KeyedFile("", keyId).decryptKeyMetadata(manager), manager);
  }

  /**
   * Reads key metadata, which is no longer encrypted.
   *
   * @param manager of any table
   * @throws RuntimeException Iceberg's own, of any type, when it cannot be read
   */
  public static NativeEncryptionKeyMetadata parsed(
      ByteBuffer keyMetadata, StandardEncryptionManager manager) {
    return manager.decrypt(EncryptedFiles.encryptedInput(NO_FILE, keyMetadata)).keyMetadata();
  }
}
