package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.KmsCaller;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * The KMS as a change of one table's keys asks it: past the cache when it is to unwrap, as what
 * counts is what the KMS says now. It counts the calls, those that are tried again once.
 */
final class AskedKms implements KeyManagementClient {
  private static final long serialVersionUID = 1L;

  private final CachingKmsClient kms;
  private final String tableName;
  private final String tableUuid;
  private int calls;

  AskedKms(CachingKmsClient kms, String tableName, String tableUuid) {
    this.kms = kms;
    this.tableName = tableName;
    this.tableUuid = tableUuid;
  }

  /** How many calls there were. */
  int calls() {
    return calls;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return ask(() -> kms.wrapKey(key, wrappingKeyId));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    return ask(() -> kms.unwrapPastCache(wrappedKey, wrappingKeyId));
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // the catalog's client was initialized with the catalog
  }

  @Override
  public String toString() {
    return kms.toString();
  }

  private ByteBuffer ask(Supplier<ByteBuffer> call) {
    calls++;
    try {
      return KmsCaller.forTable(tableName, tableUuid, call);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }
}
