package io.icebergcrypto.kms.config;

import io.icebergcrypto.format.Sha256;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;

/**
 * Tells secrets apart without keeping them: HMAC-SHA256 under a random key of this process, so that
 * a heap dump shows no secret. Anyone who has the whole memory can still try all short ones.
 */
public final class SecretHash {
  private static final byte[] KEY = new byte[32];

  static {
    new SecureRandom().nextBytes(KEY);
  }

  private SecretHash() {}

  /** The hash of a secret; good for nothing outside of this process. */
  public static String of(String secret) {
    byte[] hash = Sha256.hmac(KEY, secret.getBytes(StandardCharsets.UTF_8));
    return new String(hash, StandardCharsets.ISO_8859_1);
  }
}
