package io.icebergcrypto.testing;

import io.icebergcrypto.kms.AuthenticatedWrapping;
import java.nio.ByteBuffer;
import java.util.Map;
import org.apache.iceberg.encryption.KeyManagementClient;

/** A KMS that does nothing but fail. */
public abstract class FailingKms implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  /** What each call raises. */
  protected abstract RuntimeException failure();

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    throw failure();
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    throw failure();
  }

  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return true;
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // nothing to set
  }
}
