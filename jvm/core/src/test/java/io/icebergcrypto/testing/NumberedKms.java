package io.icebergcrypto.testing;

import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.KeystoreKmsClient;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/** The keystore's client, whose calls are numbered. */
public final class NumberedKms implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  private final KeystoreKmsClient keystore = new KeystoreKmsClient();

  @Override
  public void initialize(Map<String, String> properties) {
    keystore.initialize(properties);
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return NumberedCalls.of(
        Kind.WRAP,
        wrappingKeyId,
        () -> keystore.wrapKey(key, wrappingKeyId),
        RuntimeException::new);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return NumberedCalls.of(
        Kind.UNWRAP,
        wrappingKeyId,
        () -> keystore.unwrapKey(wrappedKey, wrappingKeyId),
        RuntimeException::new);
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
