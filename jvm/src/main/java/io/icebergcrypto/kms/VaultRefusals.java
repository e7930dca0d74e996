package io.icebergcrypto.kms;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The secret ids that Vault has refused to this process, for a while. Vault locks a role out after
 * some refused logins, for every host, so the same one is not sent with every query. They are kept
 * as HMACs under a key of this process, so that none stands in a heap dump.
 */
final class VaultRefusals {
  static final Duration PAUSE = Duration.ofSeconds(60);

  /** What Vault said, and when, by System.nanoTime(). */
  private record Refusal(String told, long nanos) {
    boolean isOver() {
      return System.nanoTime() - nanos >= PAUSE.toNanos();
    }
  }

  private static final ConcurrentMap<String, Refusal> REFUSED = new ConcurrentHashMap<>();
  private static final SecretKeySpec KEY = randomKey();

  private VaultRefusals() {}

  /** What Vault said when it refused this login a moment ago. */
  static Optional<String> told(VaultConfig config, String secretId) {
    REFUSED.values().removeIf(Refusal::isOver);
    return Optional.ofNullable(REFUSED.get(hash(config, secretId))).map(Refusal::told);
  }

  static void remember(VaultConfig config, String secretId, String told) {
    REFUSED.put(hash(config, secretId), new Refusal(told, System.nanoTime()));
  }

  private static String hash(VaultConfig config, String secretId) {
    VaultConfig.AppRole role = config.appRole();
    String login =
        String.join(
            "\n",
            config.address(),
            String.valueOf(config.namespace()),
            role.mount(),
            role.roleId(),
            secretId);
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(KEY);
      return new String(
          mac.doFinal(login.getBytes(StandardCharsets.UTF_8)), StandardCharsets.ISO_8859_1);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java has HmacSHA256", e);
    }
  }

  private static SecretKeySpec randomKey() {
    byte[] key = new byte[32];
    new SecureRandom().nextBytes(key);
    return new SecretKeySpec(key, "HmacSHA256");
  }
}
