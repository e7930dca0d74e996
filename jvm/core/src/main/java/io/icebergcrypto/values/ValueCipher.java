package io.icebergcrypto.values;

import com.google.crypto.tink.Aead;
import com.google.crypto.tink.DeterministicAead;
import com.google.crypto.tink.InsecureSecretKeyAccess;
import com.google.crypto.tink.aead.XAesGcmKey;
import com.google.crypto.tink.aead.XAesGcmParameters;
import com.google.crypto.tink.aead.internal.XAesGcm;
import com.google.crypto.tink.daead.AesSivKey;
import com.google.crypto.tink.daead.AesSivParameters;
import com.google.crypto.tink.subtle.AesSiv;
import com.google.crypto.tink.subtle.Hkdf;
import com.google.crypto.tink.util.SecretBytes;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Sha256;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;

/**
 * Encrypts values with one version of a value key. Its three keys are derived from the value key
 * with HKDF-SHA256 (RFC 5869), so that one key has one use.
 *
 * <p>A ciphertext is Tink's: the byte 1, four bytes of the key's id, then what the algorithm gives.
 * With XAES-256-GCM that is a random nonce of 24 bytes, the ciphertext and a tag of 16 bytes (C2SP
 * XAES-256-GCM: up to 2^80 values under one key); with AES-SIV a synthetic IV of 16 bytes and the
 * ciphertext (RFC 5297).
 */
final class ValueCipher {
  /** The lowest bit of the id in a ciphertext. */
  static final int DETERMINISTIC = 1;

  private static final int SALT_LENGTH = 12; // with GCM's IV of 12 bytes a nonce of 24
  private static final int KEY_LENGTH = 32; // of AES-256 and of the HMAC
  private static final int SIV_KEY_LENGTH = 64; // AES-256 twice

  private final Aead randomized;
  private final DeterministicAead deterministic;
  private final byte[] hmacKey;

  /**
   * Derives the keys.
   *
   * @param name the value key's name, which is part of what they are derived from: a key that was
   *     put under another name does not decrypt
   * @param id the version's id
   * @param valueKey not kept
   */
  ValueCipher(String name, int id, byte[] valueKey) {
    try {
      this.randomized =
          XAesGcm.create(
              XAesGcmKey.create(
                  XAesGcmParameters.create(XAesGcmParameters.Variant.TINK, SALT_LENGTH),
                  secret(derive(valueKey, "randomized", name, KEY_LENGTH)),
                  id));
      this.deterministic =
          AesSiv.create(
              AesSivKey.builder()
                  .setParameters(
                      AesSivParameters.builder()
                          .setKeySizeBytes(SIV_KEY_LENGTH)
                          .setVariant(AesSivParameters.Variant.TINK)
                          .build())
                  .setKeyBytes(secret(derive(valueKey, "deterministic", name, SIV_KEY_LENGTH)))
                  .setIdRequirement(id | DETERMINISTIC)
                  .build());
      this.hmacKey = derive(valueKey, "hash", name, KEY_LENGTH);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e); // every JRE has these algorithms
    }
  }

  private static byte[] derive(byte[] valueKey, String use, String name, int length)
      throws GeneralSecurityException {
    byte[] info = ("iceberg-crypto value key " + use + " " + name).getBytes(StandardCharsets.UTF_8);
    return Hkdf.computeHkdf("HMACSHA256", valueKey, new byte[0], info, length);
  }

  private static SecretBytes secret(byte[] key) {
    SecretBytes secret = SecretBytes.copyFrom(key, InsecureSecretKeyAccess.get());
    Arrays.fill(key, (byte) 0);
    return secret;
  }

  byte[] encrypt(byte[] value, byte[] context) {
    try {
      return randomized.encrypt(value, context);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  byte[] encryptDeterministic(byte[] value, byte[] context) {
    try {
      return deterministic.encryptDeterministically(value, context);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Decrypts what either of the two encrypted.
   *
   * @param id the one in the ciphertext
   * @throws TamperedException when it is not what was encrypted with this key and context
   */
  byte[] decrypt(int id, byte[] value, byte[] context) throws GeneralSecurityException {
    return (id & DETERMINISTIC) == 0
        ? randomized.decrypt(value, context)
        : deterministic.decryptDeterministically(value, context);
  }

  /** HMAC-SHA256 of a value. */
  byte[] hash(byte[] value) {
    return Sha256.hmac(hmacKey, value);
  }
}
