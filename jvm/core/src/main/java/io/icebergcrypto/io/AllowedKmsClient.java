package io.icebergcrypto.io;

import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import java.nio.ByteBuffer;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Unwraps with the master keys alone that a catalog allows. Metadata in force was checked when it
 * was loaded; older metadata was not, and nothing authenticates it.
 */
final class AllowedKmsClient implements UnwrapsAgain {
  private static final long serialVersionUID = 1L;

  private final AllowedKeyIds allowed;
  private final KeyManagementClient kms;

  AllowedKmsClient(AllowedKeyIds allowed, KeyManagementClient kms) {
    this.allowed = allowed;
    this.kms = kms;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return kms.wrapKey(key, wrappingKeyId);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    allowed.checkOlder(wrappingKeyId);
    return kms.unwrapKey(wrappedKey, wrappingKeyId);
  }

  @Override
  public void forget(ByteBuffer wrappedKey, String wrappingKeyId) {
    UnwrapsAgain.forget(kms, wrappedKey, wrappingKeyId);
  }

  @Override
  public String toString() {
    return kms.toString();
  }
}
