package io.icebergcrypto.parquet;

import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Sha256;
import io.icebergcrypto.kms.KmsClients;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.parquet.crypto.keytools.KeyToolkit;

/**
 * What Parquet's key tools take as an access token. They keep KMS clients and KEKs for all of a
 * JVM, by this token alone: without one, sessions with different KMS settings would use each
 * other's keys. It is a hash of the settings, which are no secret.
 */
final class CacheScope {
  private static final ThreadLocal<Boolean> PAST_CACHES = ThreadLocal.withInitial(() -> false);

  private CacheScope() {}

  /** Whether this thread wants keys that the KMS returns now. */
  static boolean isLeft() {
    return PAST_CACHES.get();
  }

  /**
   * Does something again with keys past every cache, before anyone is told that bytes are not what
   * was written: a KMS may have given a wrong key, once.
   *
   * @param token the scope whose keys are forgotten; others that use them ask again
   */
  static <T> T leave(String token, Supplier<T> call) {
    KeyToolkit.removeCacheEntriesForToken(token);
    boolean outer = PAST_CACHES.get();
    PAST_CACHES.set(true);
    try {
      return call.get();
    } finally {
      PAST_CACHES.set(outer);
    }
  }

  static String of(Map<String, String> properties) {
    Map<String, String> settings = new TreeMap<>(KmsClients.ofKms(properties));
    settings.put(
        EncryptionProperties.ALLOWED_KEY_IDS,
        String.valueOf(properties.get(EncryptionProperties.ALLOWED_KEY_IDS)));
    return Sha256.hex(settings.toString().getBytes(StandardCharsets.UTF_8));
  }
}
