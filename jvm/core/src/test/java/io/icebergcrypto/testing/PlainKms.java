package io.icebergcrypto.testing;

import io.icebergcrypto.kms.call.KeyCache;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/** A KMS that "wraps" by nothing at all, as anyone can; also for a class that does more. */
public class PlainKms implements KeyManagementClient {
  private static final long serialVersionUID = 1L;

  /** A copy: who made the key overwrites it. */
  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return ByteBuffer.wrap(KeyCache.copyOf(key));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return ByteBuffer.wrap(KeyCache.copyOf(wrappedKey));
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // nothing to set
  }
}
