package io.icebergcrypto.testing;

import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/** A double of a KMS: it wraps without a secret, and fails when it is told to. */
public final class XorKms implements KeyManagementClient {
  private static final long serialVersionUID = 1L;

  private static volatile RuntimeException failure;

  /** What each call of all of them raises from now on; null: nothing. */
  public static void failWith(RuntimeException error) {
    failure = error;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    if (failure != null) {
      throw failure;
    }

    byte[] bytes = new byte[key.remaining()];
    key.duplicate().get(bytes);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] ^= 0x55;
    }

    return ByteBuffer.wrap(bytes);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return wrapKey(wrappedKey, wrappingKeyId);
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // nothing to set
  }
}
