package io.icebergcrypto.kms.vault;

import io.icebergcrypto.IcebergCryptoException;
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
  static final String INVALID_TOKEN = "invalid token";

  /** By status and message; for 403 by what was found out about the token. */
  private static final ErrorTable TABLE =
      ErrorTable.of(
          """
          KeyNotFound <- ^400 .*(encryption key not found|key type ecdsa-p256 not supported)
          {kms} has no key '{key}'
          Check encryption.key-id and encryption.kms.vault.transit-mount, or make the key: vault \
          write -f {mount}/keys/{key}, or pyspark_iceberg_crypto.Vault(...).create_key('{key}').

          NotSupported <- ^400 .*missing 'context' for key derivation
          Key '{key}' of {kms} is a derived key
          Use a key of type aes256-gcm96, aes128-gcm96 or chacha20-poly1305 that is not derived, \
          as pyspark_iceberg_crypto.Vault(...).create_key(...) makes.

          NotSupported <- ^400 .*(non-AEAD cipher|not supported for key type)
          Key '{key}' of {kms} is of a type that cannot wrap keys with authentication {told}
          Use a key of type aes256-gcm96, aes128-gcm96 or chacha20-poly1305 that is not derived, \
          as pyspark_iceberg_crypto.Vault(...).create_key(...) makes.

          KeyDisabled <- ^400 .*disallowed by policy \\(too old\\)
          {kms} no longer unwraps with the version of key '{key}' that wrapped this: the key's \
          min_decryption_version is above it
          Lower it: vault write {mount}/keys/{key}/config min_decryption_version=N. Tables need \
          every version that wrapped their keys.

          BadWrappedKey <- ^400 decrypt
          {kms} does not unwrap a key that names '{key}' as its master key {told}
          The wrapped key was changed, or another key or another Vault wrapped it (was the key \
          deleted and made again?): restore the table's metadata, or the key from Vault's backup.

          IcebergCrypto <- ^400\s
          {kms} does not wrap with key '{key}' {told}
          Look at the key: vault read {mount}/keys/{key}.

          LoginFailed <- ^403 dead
          {kms}: login refused for key '{key}': the {login} expired, was revoked, or is not of \
          this Vault
          Put a new token there (a token file is read again by itself), or log in by AppRole, \
          Kubernetes, JWT or TLS certificate, which makes tokens as it needs them.

          AccessDenied <- ^403 good
          {kms}: the {login} may not {operation} with key '{key}': its policies do not allow it
          Its policy needs: path "{mount}/{operation}/{key}" { capabilities = ["update"] }

          AccessDenied <- ^403 unknown
          {kms}: the {login} may not {operation} with key '{key}', or its login is refused because \
          it expired {told}
          Check that the token lives (vault token lookup). Its policy needs: path \
          "{mount}/{operation}/{key}" { capabilities = ["update"] }

          InvalidConfiguration <- ^(404|405|[12]..)\s
          {kms}: key '{key}' cannot be used, there is no transit engine at '{mount}' {told}
          Enable it (vault secrets enable -path={mount} transit), or set \
          encryption.kms.vault.transit-mount and encryption.kms.vault.namespace to where it is.

          IcebergCrypto <-
          {kms} did not {operation} with key '{key}' {told}
          Look at Vault's log for this request, and at the proxy or load balancer before it.
          """);

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
    return told(answer, "").matches("400 .*(encryption key not found|key type ecdsa-p256 not).*");
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
            "kms",
            config,
            "mount",
            config.mount(),
            "login",
            config.login(),
            "key",
            keyId,
            "operation",
            operation,
            "told",
            VaultHttp.told(answer)),
        null);
  }

  private static String told(JsonHttp.Answer answer, String operation) {
    return answer.status() + " " + operation + " " + VaultHttp.message(answer);
  }
}
