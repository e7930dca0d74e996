package io.icebergcrypto.testing;

import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.nio.ByteBuffer;

/** The keystore's client, whose calls are numbered. */
public final class NumberedKms extends KeystoreDouble {
  private static final long serialVersionUID = 1L;

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return NumberedCalls.of(
        Kind.WRAP, wrappingKeyId, () -> super.wrapKey(key, wrappingKeyId), RuntimeException::new);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return NumberedCalls.of(
        Kind.UNWRAP,
        wrappingKeyId,
        () -> super.unwrapKey(wrappedKey, wrappingKeyId),
        RuntimeException::new);
  }
}
