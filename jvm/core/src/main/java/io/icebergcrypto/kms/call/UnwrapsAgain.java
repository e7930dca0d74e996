package io.icebergcrypto.kms.call;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * A client that remembers keys, and can be told that one of them may be wrong. It stands before
 * another one, which was initialized.
 */
public interface UnwrapsAgain extends KeyManagementClient {
  @Override
  default void initialize(Map<String, String> properties) {
    // the client behind this one was initialized before
  }

  /** Forgets a key, if it remembers it. */
  void forget(ByteBuffer wrappedKey, String wrappingKeyId);

  /** The same of any client. */
  static void forget(KeyManagementClient kms, ByteBuffer wrappedKey, String wrappingKeyId) {
    if (kms instanceof UnwrapsAgain again) {
      again.forget(wrappedKey, wrappingKeyId);
    }
  }

  /**
   * Forgets a key, asks the KMS for it again, and remembers that answer.
   *
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's own typed error
   */
  default ByteBuffer unwrapAgain(ByteBuffer wrappedKey, String wrappingKeyId) {
    forget(wrappedKey, wrappingKeyId);
    return unwrapKey(wrappedKey, wrappingKeyId);
  }

  /** The same of any client; one that remembers nothing is asked as always. */
  static ByteBuffer by(KeyManagementClient kms, ByteBuffer wrappedKey, String wrappingKeyId) {
    return kms instanceof UnwrapsAgain again
        ? again.unwrapAgain(wrappedKey, wrappingKeyId)
        : kms.unwrapKey(wrappedKey, wrappingKeyId);
  }

  /**
   * Unwraps a key; an answer that does not fit is asked for again, past the cache.
   *
   * @return the last answer, which may not fit either
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's own typed error
   */
  static ByteBuffer fitting(
      KeyManagementClient kms,
      ByteBuffer wrappedKey,
      String wrappingKeyId,
      Predicate<ByteBuffer> fits) {
    ByteBuffer first = kms.unwrapKey(wrappedKey, wrappingKeyId);
    return fits.test(first) ? first : by(kms, wrappedKey, wrappingKeyId);
  }

  /**
   * Wraps a key, and has the KMS unwrap it again: what was encrypted with a key that does not come
   * back is lost, and a cache would hide that for an hour.
   *
   * @throws BadWrappedKeyException when other bytes come back
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's own typed error
   */
  static ByteBuffer wrapped(KeyManagementClient kms, ByteBuffer key, String wrappingKeyId) {
    ByteBuffer wrapped = kms.wrapKey(key.duplicate(), wrappingKeyId);
    check(kms, key, wrapped, wrappingKeyId);
    return wrapped;
  }

  /** The same for who need not be let unwrap: what they may not check counts. */
  static ByteBuffer wrappedOrDenied(KeyManagementClient kms, ByteBuffer key, String wrappingKeyId) {
    ByteBuffer wrapped = kms.wrapKey(key.duplicate(), wrappingKeyId);
    try {
      check(kms, key, wrapped, wrappingKeyId);
    } catch (AccessDeniedException e) {
      return wrapped;
    }

    return wrapped;
  }

  private static void check(
      KeyManagementClient kms, ByteBuffer key, ByteBuffer wrapped, String wrappingKeyId) {
    if (!comesBack(key, () -> by(kms, wrapped, wrappingKeyId))) {
      forget(kms, wrapped, wrappingKeyId);
      throw otherBytes(kms, wrappingKeyId);
    }
  }

  /**
   * Whether a key that was wrapped just now comes back. That the KMS takes it for none that it
   * wrapped is said of its own answer, and not of a table's metadata.
   *
   * @throws io.icebergcrypto.IcebergCryptoException the KMS's other errors
   */
  static boolean comesBack(ByteBuffer key, Supplier<ByteBuffer> unwrap) {
    try {
      return key.equals(unwrap.get());
    } catch (BadWrappedKeyException e) {
      return false;
    }
  }

  /** The error of a KMS that does not give back what it wrapped. */
  static BadWrappedKeyException otherBytes(KeyManagementClient kms, String wrappingKeyId) {
    return BadWrappedKeyException.ofAnswer(
        String.format("%s unwraps other bytes than it wrapped under key '%s'", kms, wrappingKeyId),
        "The key was not used. If that happens again, do not use this KMS: data written with it"
            + " could not be read.");
  }
}
