package io.icebergcrypto.io;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.kms.call.KmsCaller;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The catalog's KMS client for one table: its errors and its log name the table. It unwraps each
 * KEK with the master key that wrapped it: metadata of before a rotation, and what was committed
 * during one, have KEKs of another master key than the table's.
 */
final class TableKmsClient implements KeyManagementClient {
  private static final long serialVersionUID = 1L;

  private static final Logger LOG = LoggerFactory.getLogger(TableKmsClient.class);

  private final String tableName;
  private final KeyManagementClient kms;
  private transient BiFunction<ByteBuffer, String, String> masterKeyOf =
      (kek, tableKey) -> tableKey;

  TableKmsClient(String tableName, KeyManagementClient kms) {
    this.tableName = tableName;
    this.kms = kms;
  }

  /**
   * Tells which master key wrapped a KEK.
   *
   * @param wrappedBy gives its id, from the wrapped KEK and the table's key id
   */
  void unwrapsWith(BiFunction<ByteBuffer, String, String> wrappedBy) {
    this.masterKeyOf = wrappedBy;
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // the shared client was initialized with the catalog
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return named(() -> kms.wrapKey(key, wrappingKeyId));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    String masterKeyId = masterKeyOf.apply(wrappedKey, wrappingKeyId);
    return named(() -> kms.unwrapKey(wrappedKey, masterKeyId));
  }

  /**
   * Begins to unwrap a KEK that is soon needed, where it is kept then. Who needs it gets the error,
   * if it does not unwrap.
   */
  void unwrapAhead(ByteBuffer wrappedKey, String wrappingKeyId) {
    if (kms instanceof BoundKmsClient bound && bound.keepsKeys()) {
      AsCaller.ahead(
          () -> {
            try {
              Arrays.fill(unwrapKey(wrappedKey, wrappingKeyId).array(), (byte) 0); // a copy
            } catch (RuntimeException | LinkageError e) {
              LOG.debug("Cannot unwrap a KEK of {} ahead", tableName, e);
            }
          });
    }
  }

  @Override
  public String toString() {
    return kms.toString();
  }

  private ByteBuffer named(Supplier<ByteBuffer> operation) {
    try {
      return KmsCaller.forTable(tableName, operation);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }
}
