package io.icebergcrypto.io;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.kms.BoundKmsClient;
import io.icebergcrypto.kms.call.AsCaller;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.UnwrappedKek;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The catalog's KMS client for one table: its errors and its log name the table. It unwraps each
 * KEK with the master key that wrapped it: metadata from before a rotation, and what was committed
 * during one, have KEKs of another master key than the table's.
 */
final class KekClient implements UnwrapsAgain {
  private static final long serialVersionUID = 1L;

  private static final Logger LOG = LoggerFactory.getLogger(KekClient.class);

  private final String tableName;
  private final KeyManagementClient kms;
  private transient Supplier<List<EncryptedKey>> entries = List::of;

  KekClient(String tableName, KeyManagementClient kms) {
    this.tableName = tableName;
    this.kms = kms;
  }

  /** Tells the table's keys: which master key wrapped a KEK, and what the KEK must decrypt. */
  void knows(Supplier<List<EncryptedKey>> keys) {
    this.entries = keys;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return named(() -> kms.wrapKey(key, wrappingKeyId));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    List<EncryptedKey> keys = entries.get();
    EncryptedKey kek = kek(keys, wrappedKey, wrappingKeyId);
    return named(() -> UnwrappedKek.of(kek, keys, kms));
  }

  /**
   * The KEK's entry. Iceberg gives the very array of the entry that it needs: others may have the
   * same bytes, and another master key, or no check value. Where it is not a known entry's, as
   * after a rotation meanwhile, the table's master key and a check value count first; and where no
   * entry tells, it is under the table's master key.
   */
  private static EncryptedKey kek(
      List<EncryptedKey> keys, ByteBuffer wrappedKey, String wrappingKeyId) {
    Set<String> ids = keys.stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
    return keys.stream()
        .filter(key -> wrappedKey.equals(key.encryptedKeyMetadata()))
        .filter(key -> key.encryptedById() != null && !ids.contains(key.encryptedById()))
        .min(
            Comparator.<EncryptedKey, Boolean>comparing(key -> !isOf(key, wrappedKey))
                .thenComparing(key -> !key.encryptedById().equals(wrappingKeyId))
                .thenComparing(key -> !Kek.hasCheckValue(key))
                .thenComparing(EncryptedKey::keyId))
        .orElseGet(() -> new BaseEncryptedKey("(unknown)", wrappedKey, wrappingKeyId, Map.of()));
  }

  private static boolean isOf(EncryptedKey key, ByteBuffer wrapped) {
    ByteBuffer own = key.encryptedKeyMetadata();
    return own.hasArray() && wrapped.hasArray() && own.array() == wrapped.array();
  }

  @Override
  public ByteBuffer unwrapAgain(ByteBuffer wrappedKey, String wrappingKeyId) {
    return named(() -> UnwrapsAgain.by(kms, wrappedKey, wrappingKeyId));
  }

  @Override
  public void forget(ByteBuffer wrappedKey, String wrappingKeyId) {
    UnwrapsAgain.forget(kms, wrappedKey, wrappingKeyId);
  }

  /**
   * Begins to unwrap a KEK that is soon needed, where it is kept then. The caller that needs it
   * gets the error, if it does not unwrap.
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
      return CallContext.forTable(tableName, operation);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }

  /**
   * Unwraps with the master keys alone that a catalog allows. Metadata in force was checked when it
   * was loaded; older metadata was not, and nothing authenticates it.
   */
  record Allowed(AllowedKeyIds allowed, KeyManagementClient kms) implements UnwrapsAgain {
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
}
