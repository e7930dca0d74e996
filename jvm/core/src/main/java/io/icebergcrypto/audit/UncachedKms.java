package io.icebergcrypto.audit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.CallContext;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * A catalog's KMS as an audit or a change of one table's keys asks it: past the cache, as what
 * counts is what the KMS says now. It counts the calls, those that are tried again once.
 *
 * <p>Where a table moves to another KMS, that one wraps; what is wrapped is unwrapped by the former
 * one, or by this one if that refuses: another operator may have been first, or the call is made
 * again.
 */
public final class UncachedKms implements KeyManagementClient, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  private final transient Supplier<CachingKmsClient> kms;
  private final CachingKmsClient former; // null: the same
  private final String tableName;
  private final String tableUuid;
  private final AtomicInteger calls;

  /**
   * Asks nothing yet.
   *
   * @param kms returns the client, or says that the catalog has none
   * @param former the KMS that wrapped the table's keys; null: the same
   */
  public UncachedKms(
      Supplier<CachingKmsClient> kms, CachingKmsClient former, String tableName, String tableUuid) {
    this(kms, former, tableName, tableUuid, new AtomicInteger());
  }

  private UncachedKms(
      Supplier<CachingKmsClient> kms,
      CachingKmsClient former,
      String tableName,
      String tableUuid,
      AtomicInteger calls) {
    this.kms = kms;
    this.former = former;
    this.tableName = tableName;
    this.tableUuid = tableUuid;
    this.calls = calls;
  }

  /** How many calls there were. */
  public int calls() {
    return calls.get();
  }

  /** The KMS that wraps alone: the other one knows nothing of what is wrapped now. */
  public UncachedKms wrapping() {
    return former == null ? this : new UncachedKms(kms, null, tableName, tableUuid, calls);
  }

  /** The KMS that wrapped the table's keys. */
  public CachingKmsClient former() {
    return former == null ? kms.get() : former;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return ask(kms.get(), client -> client.wrapKey(key, wrappingKeyId));
  }

  /** Has a master key wrap a random key, which it returns. */
  public ByteBuffer tryWrap(String masterKeyId) {
    return ask(kms.get(), client -> client.tryWrap(masterKeyId));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    try {
      return ask(former(), client -> client.unwrapPastCache(wrappedKey, wrappingKeyId));
    } catch (KmsUnavailableException | LoginFailedException e) {
      throw e;
    } catch (IcebergCryptoException e) {
      if (former == null) {
        throw e;
      }

      try {
        return wrapping().unwrapKey(wrappedKey, wrappingKeyId);
      } catch (KmsUnavailableException | LoginFailedException unknown) {
        unknown.addSuppressed(e); // which is no news if this KMS has the key already
        throw unknown;
      } catch (IcebergCryptoException neither) {
        e.addSuppressed(neither);
        throw e;
      }
    }
  }

  /** Whether that is so of each KMS that may be asked to unwrap. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return kms.get().authenticatesWrapping(wrappingKeyId)
        && (former == null || former.authenticatesWrapping(wrappingKeyId));
  }

  @Override
  public void initialize(Map<String, String> properties) {
    // the catalog's client was initialized with the catalog
  }

  @Override
  public String toString() {
    try {
      return kms.get().toString();
    } catch (IcebergCryptoException e) {
      return "no KMS";
    }
  }

  private ByteBuffer ask(CachingKmsClient client, Function<CachingKmsClient, ByteBuffer> call) {
    calls.incrementAndGet();
    return CallContext.forTable(tableName, tableUuid, () -> call.apply(client));
  }
}
