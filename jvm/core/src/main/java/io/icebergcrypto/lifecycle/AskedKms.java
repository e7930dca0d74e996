package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsCaller;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * The KMS as a change of one table's keys asks it: past the cache when it is to unwrap, as what
 * counts is what the KMS says now. It counts the calls, those that are tried again once.
 *
 * <p>Where a table moves to another KMS, that one wraps; what is wrapped is unwrapped by the former
 * one, or by this one if that refuses: another operator may have been first, or the call is made
 * again.
 */
final class AskedKms implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  private final CachingKmsClient kms;
  private final CachingKmsClient former; // null: the same
  private final String tableName;
  private final String tableUuid;
  private int calls;

  /**
   * Asks nothing yet.
   *
   * @param former the KMS that wrapped the table's KEKs; null: the same
   */
  AskedKms(CachingKmsClient kms, CachingKmsClient former, String tableName, String tableUuid) {
    this.kms = kms;
    this.former = former;
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
    if (former == null) {
      return unwrapNew(wrappedKey, wrappingKeyId);
    }

    try {
      return ask(() -> former.unwrapPastCache(wrappedKey, wrappingKeyId));
    } catch (KmsUnavailableException | LoginFailedException e) {
      throw e;
    } catch (IcebergCryptoException e) {
      try {
        return unwrapNew(wrappedKey, wrappingKeyId);
      } catch (IcebergCryptoException neither) {
        e.addSuppressed(neither);
        throw e;
      }
    }
  }

  /** Has the KMS unwrap what it wrapped itself. */
  private ByteBuffer unwrapNew(ByteBuffer wrappedKey, String wrappingKeyId) {
    return ask(() -> kms.unwrapPastCache(wrappedKey, wrappingKeyId));
  }

  /**
   * Has a key wrapped anew, and looks at what that unwraps to: three calls.
   *
   * @param newWrappingKeyId the master key that is to wrap it, in its newest version
   * @throws TamperedException when the KMS unwraps other bytes than it wrapped
   */
  ByteBuffer wrapAnew(ByteBuffer wrappedKey, String wrappingKeyId, String newWrappingKeyId) {
    byte[] bytes = KeyCache.copyOf(unwrapKey(wrappedKey, wrappingKeyId));
    byte[] again = {};
    try {
      ByteBuffer wrapped = wrapKey(ByteBuffer.wrap(bytes), newWrappingKeyId);
      again = KeyCache.copyOf(unwrapNew(wrapped, newWrappingKeyId));
      if (!Arrays.equals(bytes, again)) {
        throw new TamperedException(
                String.format(
                    "the KMS unwraps other bytes than it wrapped with key '%s'", newWrappingKeyId),
                "Nothing was changed. Do not use this KMS client.")
            .inTable(tableName);
      }

      return wrapped;
    } finally {
      Arrays.fill(bytes, (byte) 0);
      Arrays.fill(again, (byte) 0);
    }
  }

  /** Whether that is so of each KMS that may be asked to unwrap. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return kms.authenticatesWrapping(wrappingKeyId)
        && (former == null || former.authenticatesWrapping(wrappingKeyId));
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
