package io.icebergcrypto.lifecycle;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.config.WrappedValueKey;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.call.KmsCaller;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.UnwrappedKek;
import io.icebergcrypto.values.ValueKeys;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.EncryptedKey;
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
  private final AtomicInteger calls;

  /**
   * Asks nothing yet.
   *
   * @param former the KMS that wrapped the table's KEKs; null: the same
   */
  AskedKms(CachingKmsClient kms, CachingKmsClient former, String tableName, String tableUuid) {
    this(kms, former, tableName, tableUuid, new AtomicInteger());
  }

  private AskedKms(
      CachingKmsClient kms,
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
  int calls() {
    return calls.get();
  }

  /** The KMS that wraps alone: the other one knows nothing of what is wrapped now. */
  AskedKms wrapping() {
    return former == null ? this : new AskedKms(kms, null, tableName, tableUuid, calls);
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return ask(() -> kms.wrapKey(key, wrappingKeyId));
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    if (former == null) {
      return ask(() -> kms.unwrapPastCache(wrappedKey, wrappingKeyId));
    }

    try {
      return ask(() -> former.unwrapPastCache(wrappedKey, wrappingKeyId));
    } catch (KmsUnavailableException | LoginFailedException e) {
      throw e;
    } catch (IcebergCryptoException e) {
      try {
        return wrapping().unwrapKey(wrappedKey, wrappingKeyId);
      } catch (IcebergCryptoException neither) {
        e.addSuppressed(neither);
        throw e;
      }
    }
  }

  /**
   * Has a KEK wrapped anew: three calls.
   *
   * @param entries the table's keys
   * @param newWrappingKeyId the master key that is to wrap it, in its newest version
   * @throws BadWrappedKeyException when the KMS gives another key than it wrapped
   */
  ByteBuffer wrapAnew(EncryptedKey kek, Collection<EncryptedKey> entries, String newWrappingKeyId) {
    try {
      return UnwrapsAgain.wrapped(
          wrapping(), UnwrappedKek.of(kek, entries, this), newWrappingKeyId);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }

  /**
   * Has a value key wrapped anew: three calls; four where only that the KMS gives it twice tells
   * whether it is the right one.
   *
   * @param newWrappingKeyId the master key that is to wrap it, in its newest version
   * @throws BadWrappedKeyException when the KMS gives another key, or another one than it wrapped
   */
  ByteBuffer wrapAnew(WrappedValueKey key, String newWrappingKeyId) {
    ByteBuffer answer =
        UnwrapsAgain.fitting(
            this, key.bytes(), key.masterKeyId(), bytes -> ValueKeys.problem(key, bytes) == null);
    String problem = ValueKeys.problem(key, answer);
    if (problem != null) {
      problem += ", twice";
    } else if (!Kek.isCheckValue(key.checkValue())
        && !answer.equals(unwrapKey(key.bytes(), key.masterKeyId()))) {
      problem = "two different keys";
    }

    if (problem != null) {
      throw ValueKeys.cannotBeUsed(key, former == null ? kms : former, problem).inTable(tableName);
    }

    return UnwrapsAgain.wrapped(wrapping(), answer, newWrappingKeyId);
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
    calls.incrementAndGet();
    try {
      return KmsCaller.forTable(tableName, tableUuid, call);
    } catch (IcebergCryptoException e) {
      throw e.inTable(tableName);
    }
  }
}
