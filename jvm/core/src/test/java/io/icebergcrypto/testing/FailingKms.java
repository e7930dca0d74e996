package io.icebergcrypto.testing;

import io.icebergcrypto.kms.AuthenticatedWrapping;
import java.nio.ByteBuffer;

/** A KMS that does nothing but fail. */
public abstract class FailingKms extends PlainKms implements AuthenticatedWrapping {
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
}
