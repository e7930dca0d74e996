package io.icebergcrypto.parquet;

import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.kms.KmsClients;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;

/**
 * What Parquet's key tools take as an access token. They keep KMS clients and KEKs for all of a
 * JVM, by this token alone: without one, sessions with different KMS settings would use each
 * other's keys. It is a hash of the settings, which are no secret.
 */
final class CacheScope {
  private CacheScope() {}

  static String of(Map<String, String> properties) {
    Map<String, String> settings = new TreeMap<>(KmsClients.ofKms(properties));
    settings.put(
        EncryptionProperties.ALLOWED_KEY_IDS,
        String.valueOf(properties.get(EncryptionProperties.ALLOWED_KEY_IDS)));
    try {
      byte[] text = settings.toString().getBytes(StandardCharsets.UTF_8);
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e); // every Java has it
    }
  }
}
