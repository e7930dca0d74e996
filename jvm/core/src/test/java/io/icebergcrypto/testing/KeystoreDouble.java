package io.icebergcrypto.testing;

import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.KeystoreKmsClient;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/** The keystore's client, for a class that does something else at some of its calls. */
public abstract class KeystoreDouble implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  private final KeystoreKmsClient keystore = new KeystoreKmsClient();

  @Override
  public void initialize(Map<String, String> properties) {
    keystore.initialize(properties);
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return keystore.wrapKey(key, wrappingKeyId);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return keystore.unwrapKey(wrappedKey, wrappingKeyId);
  }

  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  @Override
  public void close() {
    keystore.close();
  }
}
