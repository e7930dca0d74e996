package io.icebergcrypto.kms.config;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Tells secrets apart without keeping them: HMAC-SHA256 under a random key of this process, so that
 * a heap dump shows no secret. Anyone who has the whole memory can still try all short ones.
 */
public final class SecretHash {
  private static final String ALGORITHM = "HmacSHA256";
  private static final SecretKeySpec KEY = randomKey();

  private SecretHash() {}

  /** The hash of a secret; good for nothing outside of this process. */
  public static String of(String secret) {
    try {
      Mac mac = Mac.getInstance(ALGORITHM);
      mac.init(KEY);
      byte[] hash = mac.doFinal(secret.getBytes(StandardCharsets.UTF_8));
      return new String(hash, StandardCharsets.ISO_8859_1);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has " + ALGORITHM, e);
    }
  }

  private static SecretKeySpec randomKey() {
    byte[] key = new byte[32];
    new SecureRandom().nextBytes(key);
    return new SecretKeySpec(key, ALGORITHM);
  }
}
