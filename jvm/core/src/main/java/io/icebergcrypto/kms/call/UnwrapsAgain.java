package io.icebergcrypto.kms.call;

import java.nio.ByteBuffer;
import org.apache.iceberg.encryption.KeyManagementClient;

/** A client that remembers keys, and can be told that one of them may be wrong. */
public interface UnwrapsAgain {
  /**
   * Forgets a key, asks the KMS for it once more, and remembers that answer.
   *
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's own typed error
   */
  ByteBuffer unwrapAgain(ByteBuffer wrappedKey, String wrappingKeyId);

  /** The same of any client; one that remembers nothing is asked as always. */
  static ByteBuffer by(KeyManagementClient kms, ByteBuffer wrappedKey, String wrappingKeyId) {
    return kms instanceof UnwrapsAgain again
        ? again.unwrapAgain(wrappedKey, wrappingKeyId)
        : kms.unwrapKey(wrappedKey, wrappingKeyId);
  }
}
