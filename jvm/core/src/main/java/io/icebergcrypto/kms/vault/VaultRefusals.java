package io.icebergcrypto.kms.vault;

import io.icebergcrypto.kms.config.SecretHash;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * The secret ids and JWTs that Vault has refused to this process, for a while. Vault locks a role
 * out after some refused logins, for every host, so the same one is not sent with every query. They
 * are kept as hashes ({@link SecretHash}).
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

  private VaultRefusals() {}

  /** What Vault said when it refused this login a moment ago. */
  static Optional<String> told(VaultConfig config, String secret) {
    REFUSED.values().removeIf(Refusal::isOver);
    return Optional.ofNullable(REFUSED.get(hash(config, secret))).map(Refusal::told);
  }

  static void remember(VaultConfig config, String secret, String told) {
    REFUSED.put(hash(config, secret), new Refusal(told, System.nanoTime()));
  }

  private static String hash(VaultConfig config, String secret) {
    VaultAuth auth = config.auth();
    return SecretHash.of(
        String.join(
            "\n",
            config.address(),
            String.valueOf(config.namespace()),
            auth.mount(),
            String.valueOf(auth.role()),
            secret));
  }
}
