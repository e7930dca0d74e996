package io.icebergcrypto.kms.vault;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.call.ErrorTable;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Locale;
import java.util.Map;

/**
 * What Vault's answers about a key mean. Vault has few status codes (400 is a bad ciphertext as
 * well as a missing key), so its messages decide; where a version of Vault changes a message, the
 * plain error with Vault's own text is left.
 */
final class VaultErrors {
  private static final String USE_OTHER_KEY =
      "Use a key of type aes256-gcm96, aes128-gcm96 or chacha20-poly1305 that is not derived, as"
          + " pyspark_iceberg_crypto.Vault(...).create_key(...) makes.";

  private static final String GRANT =
      "Its policy needs: path \"{mount}/{operation}/{key}\" { capabilities = [\"update\"] }";

  private static final String MISSING_KEY =
      "^400 .*(encryption key not found|key type " + VaultKeys.NEVER_CREATE + " not supported)";

  private static final String INVALID_TOKEN = "invalid token";

  /** By status and message; for 403 by what was found out about the token. */
  private static final ErrorTable TABLE =
      new ErrorTable()
          .row(
              MISSING_KEY,
              KeyNotFoundException::new,
              "{kms} has no key '{key}'",
              "Check encryption.key-id and "
                  + VaultConfig.TRANSIT_MOUNT
                  + ", or make the key: vault write -f {mount}/keys/{key}, or"
                  + " pyspark_iceberg_crypto.Vault(...).create_key('{key}').")
          .row(
              "^400 .*missing 'context' for key derivation",
              NotSupportedException::new,
              "Key '{key}' of {kms} is a derived key",
              USE_OTHER_KEY)
          .row(
              "^400 .*(non-AEAD cipher|not supported for key type)",
              NotSupportedException::new,
              "Key '{key}' of {kms} is of a type that cannot wrap keys with authentication {told}",
              USE_OTHER_KEY)
          .row(
              "^400 .*disallowed by policy \\(too old\\)",
              KeyDisabledException::new,
              "{kms} no longer unwraps with the version of key '{key}' that wrapped this: the key's"
                  + " min_decryption_version is above it",
              "Lower it: vault write {mount}/keys/{key}/config min_decryption_version=N. Tables"
                  + " need every version that wrapped their keys.")
          .row(
              "^400 decrypt",
              BadWrappedKeyException::new,
              "{kms} does not unwrap a key that names '{key}' as its master key {told}",
              "The wrapped key was changed, or another key or another Vault wrapped it (was the key"
                  + " deleted and made again?): restore the table's metadata, or the key from"
                  + " Vault's backup.")
          .row(
              "^400 ",
              IcebergCryptoException::new,
              "{kms} does not wrap with key '{key}' {told}",
              "Look at the key: vault read {mount}/keys/{key}.")
          .row(
              "^403 dead",
              LoginFailedException::new,
              "{kms}: login refused for key '{key}': the {login} expired, was revoked, or is not of"
                  + " this Vault",
              "Put a new token there (a token file is read again by itself), or log in by AppRole,"
                  + " Kubernetes, JWT or TLS certificate, which makes tokens as it needs them.")
          .row(
              "^403 good",
              AccessDeniedException::new,
              "{kms}: the {login} may not {operation} with key '{key}': its policies do not allow"
                  + " it",
              GRANT)
          .row(
              "^403 unknown",
              AccessDeniedException::new,
              "{kms}: the {login} may not {operation} with key '{key}', or its login is refused"
                  + " because it expired {told}",
              "Check that the token lives (vault token lookup). " + GRANT)
          .row(
              "^(404|405|[12]..) ",
              InvalidConfigurationException::new,
              "{kms}: key '{key}' cannot be used, there is no transit engine at '{mount}' {told}",
              "Enable it (vault secrets enable -path={mount} transit), or set "
                  + VaultConfig.TRANSIT_MOUNT
                  + " and "
                  + VaultConfig.NAMESPACE
                  + " to where it is.")
          .row(
              "",
              IcebergCryptoException::new,
              "{kms} did not {operation} with key '{key}' {told}",
              "Look at Vault's log for this request, and at the proxy or load balancer before it.");

  /** What is known of a token that Vault answered 403 to. */
  enum Token {
    /** Vault does not know it. */
    DEAD,
    /** It is good, and its policies do not allow the operation. */
    GOOD,
    /** It may not ask Vault about itself. */
    UNKNOWN
  }

  private final VaultConfig config;

  VaultErrors(VaultConfig config) {
    this.config = config;
  }

  static boolean isInvalidToken(JsonHttp.Answer answer) {
    return VaultHttp.message(answer).contains(INVALID_TOKEN);
  }

  /** An answer to encrypt or decrypt that says the key is not there. */
  static boolean isMissingKey(JsonHttp.Answer answer) {
    return told(answer, "").matches(MISSING_KEY + ".*");
  }

  /**
   * The error for an answer without a result, with another status than 403.
   *
   * @param operation encrypt or decrypt
   */
  IcebergCryptoException of(JsonHttp.Answer answer, String operation, String keyId) {
    return error(told(answer, operation), answer, operation, keyId);
  }

  /** The error for a key that is not there, whatever the answer said. */
  IcebergCryptoException keyNotFound(JsonHttp.Answer answer, String operation, String keyId) {
    return error("400 encryption key not found", answer, operation, keyId);
  }

  /** The error for an answer of 403. */
  IcebergCryptoException denied(
      Token token, JsonHttp.Answer answer, String operation, String keyId) {
    return error("403 " + token.name().toLowerCase(Locale.ROOT), answer, operation, keyId);
  }

  private IcebergCryptoException error(
      String told, JsonHttp.Answer answer, String operation, String keyId) {
    return TABLE.error(
        told,
        Map.of(
            "kms", config,
            "mount", config.mount(),
            "login", config.login(),
            "key", keyId,
            "operation", operation,
            "told", VaultHttp.told(answer)),
        null);
  }

  private static String told(JsonHttp.Answer answer, String operation) {
    return answer.status() + " " + operation + " " + VaultHttp.message(answer);
  }
}
