package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.audit.UncachedKms;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.UnwrapsAgain;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What the KMS answers an audit of one table: it is asked once for each key, and a master key for
 * which there was no answer is left alone. The unwrapped KEKs are kept until this is closed, and
 * then overwritten.
 */
final class AuditedKms implements UnwrapsAgain, AuthenticatedWrapping {
  private static final long serialVersionUID = 1L;

  private record Wrapped(String masterKeyId, ByteBuffer blob) {
    static Wrapped of(String masterKeyId, ByteBuffer wrappedKey) {
      return new Wrapped(masterKeyId, ByteBuffer.wrap(KeyCache.copyOf(wrappedKey)));
    }
  }

  private final transient UncachedKms kms;
  private final transient Map<Wrapped, byte[]> unwrapped = new HashMap<>();
  private final transient Map<Wrapped, IcebergCryptoException> refused = new HashMap<>();
  private final transient Map<String, IcebergCryptoException> silent = new HashMap<>();

  /** Asks nothing yet. */
  AuditedKms(UncachedKms kms) {
    this.kms = kms;
  }

  /** Why the KMS did not answer for a master key; null: it did, or was not asked. */
  IcebergCryptoException silence(String masterKeyId) {
    return silent.get(masterKeyId);
  }

  /** Whether it, or the way to it, has refused to unwrap a key. */
  boolean hasRefused() {
    return !refused.isEmpty();
  }

  @Override
  public void forget(ByteBuffer wrappedKey, String wrappingKeyId) {
    byte[] former = unwrapped.remove(Wrapped.of(wrappingKeyId, wrappedKey));
    if (former != null) {
      Arrays.fill(former, (byte) 0);
    }
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    Wrapped key = Wrapped.of(wrappingKeyId, wrappedKey);
    if (refused.containsKey(key)) {
      throw refused.get(key);
    }

    byte[] known = unwrapped.get(key);
    if (known == null) {
      try {
        known = ask(wrappingKeyId, () -> KeyCache.copyOf(kms.unwrapKey(wrappedKey, wrappingKeyId)));
        unwrapped.put(key, known);
      } catch (IcebergCryptoException e) {
        refused.put(key, e);
        throw e;
      }
    }

    return ByteBuffer.wrap(known.clone());
  }

  /** Has a master key wrap a random key. */
  void tryWrap(String masterKeyId) {
    ask(masterKeyId, () -> kms.tryWrap(masterKeyId));
  }

  private <T> T ask(String masterKeyId, Supplier<T> call) {
    if (silent.containsKey(masterKeyId)) {
      throw silent.get(masterKeyId);
    }

    try {
      return call.get();
    } catch (KmsUnavailableException
        | LoginFailedException // a second try could lock the account
        | InvalidConfigurationException e) {
      silent.put(masterKeyId, e);
      throw e;
    }
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    throw new UnsupportedOperationException("An audit makes no keys");
  }

  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return kms.authenticatesWrapping(wrappingKeyId);
  }

  /** Overwrites the keys. */
  @Override
  public void close() {
    unwrapped.values().forEach(key -> Arrays.fill(key, (byte) 0));
    unwrapped.clear();
  }

  @Override
  public String toString() {
    return kms.toString();
  }
}
