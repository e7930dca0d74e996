package io.icebergcrypto.kms;

import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import java.nio.ByteBuffer;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * A catalog's KMS client as one table's encryption manager has it: each call tells the table's
 * UUID, on executors too. What is made of that is the KMS client's matter: see {@code
 * TableBinding}.
 */
public final class BoundKmsClient implements UnwrapsAgain {
  private static final long serialVersionUID = 1L;

  private final String tableUuid;
  private final KeyManagementClient kms;

  /**
   * Binds a client that was initialized.
   *
   * @param tableUuid the table's UUID; null: not known
   */
  public BoundKmsClient(String tableUuid, KeyManagementClient kms) {
    this.tableUuid = tableUuid;
    this.kms = kms;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return CallContext.boundTo(tableUuid, () -> kms.wrapKey(key, wrappingKeyId));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return CallContext.boundTo(tableUuid, () -> kms.unwrapKey(wrappedKey, wrappingKeyId));
  }

  @Override
  public void forget(ByteBuffer wrappedKey, String wrappingKeyId) {
    CallContext.boundTo(
        tableUuid, // the cache keeps it for this table
        () -> {
          UnwrapsAgain.forget(kms, wrappedKey, wrappingKeyId);
          return null;
        });
  }

  /** Whether a key that is unwrapped is kept, so that the next call for it asks no KMS. */
  public boolean keepsKeys() {
    return kms instanceof CachingKmsClient caching && caching.keepsKeys();
  }

  @Override
  public String toString() {
    return kms.toString();
  }
}
