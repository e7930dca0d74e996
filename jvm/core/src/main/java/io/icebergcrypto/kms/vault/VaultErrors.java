package io.icebergcrypto.kms.vault;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.http.JsonHttp;

/**
 * What Vault's answers about a key mean. Vault has few status codes (400 is a bad ciphertext as
 * well as a missing key), so its messages decide; where a version of Vault changes a message, the
 * plain error with Vault's own text is left.
 */
record VaultErrors(VaultConfig config) {
  static final String INVALID_TOKEN = "invalid token";

  private static final String USABLE =
      "Use a key of type aes256-gcm96, aes128-gcm96 or chacha20-poly1305 that is not derived, as"
          + " pyspark_iceberg_crypto.Vault(...).create_key(...) makes.";

  static boolean isInvalidToken(JsonHttp.Answer answer) {
    return VaultHttp.message(answer).contains(INVALID_TOKEN);
  }

  /** An answer to decrypt that says that the key has no such version, or not yet. */
  static boolean isTooNew(JsonHttp.Answer answer) {
    return answer.status() == 400 && VaultHttp.message(answer).contains("version is too new");
  }

  /** An answer to encrypt or decrypt that says the key is not there. */
  static boolean isMissingKey(JsonHttp.Answer answer) {
    String message = VaultHttp.message(answer);
    return answer.status() == 400
        && (message.contains("encryption key not found")
            || message.contains("key type " + VaultKeys.NEVER_CREATE + " not"));
  }

  /**
   * The error for an answer without a result, with another status than 403.
   *
   * @param operation encrypt or decrypt
   */
  IcebergCryptoException of(JsonHttp.Answer answer, String operation, String keyId) {
    int status = answer.status();
    if (status == 400) {
      return refused(answer, operation, keyId);
    }

    String told = VaultHttp.told(answer);
    if (status == 404 || status == 405 || status < 300) {
      return new InvalidConfigurationException(
          String.format(
              "%s: key '%s' cannot be used, there is no transit engine at '%s' %s",
              config, keyId, config.mount(), told),
          String.format(
              "Enable it (vault secrets enable -path=%s transit), or set"
                  + " encryption.kms.vault.transit-mount and encryption.kms.vault.namespace to"
                  + " where it is.",
              config.mount()));
    }

    return new IcebergCryptoException(
        String.format("%s did not %s with key '%s' %s", config, operation, keyId, told),
        "Look at Vault's log for this request, and at the proxy or load balancer before it.");
  }

  private IcebergCryptoException refused(JsonHttp.Answer answer, String operation, String keyId) {
    String message = VaultHttp.message(answer);
    String told = VaultHttp.told(answer);
    String path = config.mount() + "/keys/" + keyId;
    if (isMissingKey(answer)) {
      return keyNotFound(keyId);
    }

    if (message.contains("missing 'context' for key derivation")) {
      return new NotSupportedException(
          String.format("Key '%s' of %s is a derived key", keyId, config), USABLE);
    }

    if (message.contains("non-AEAD cipher") || message.contains("not supported for key type")) {
      return new NotSupportedException(
          String.format(
              "Key '%s' of %s is of a type that cannot wrap keys with authentication %s",
              keyId, config, told),
          USABLE);
    }

    if (message.contains("disallowed by policy (too old)")) {
      return new KeyDisabledException(
          String.format(
              "%s no longer unwraps with the version of key '%s' that wrapped this: the key's"
                  + " min_decryption_version is above it",
              config, keyId),
          String.format(
              "Lower it: vault write %s/config min_decryption_version=N. Tables need every version"
                  + " that wrapped their keys.",
              path));
    }

    if (isTooNew(answer)) {
      return new KmsUnavailableException(
              String.format(
                  "%s does not have the version of key '%s' that wrapped this, or not yet %s",
                  config, keyId, told),
              String.format(
                  "A standby or a secondary cluster has it soon after a rotation: try again, or"
                      + " give the address of the active cluster. If it stays so, this Vault was"
                      + " restored from a snapshot before the rotation, or the key was deleted and"
                      + " created again: restore the key from a backup that has the version (vault"
                      + " read %s). Only if there never was one was the wrapped key changed.",
                  path))
          .ofWrappedKey();
    }

    return operation.equals(VaultKeys.DECRYPT)
        ? new BadWrappedKeyException(
            String.format(
                "%s does not unwrap a key that names '%s' as its master key %s",
                config, keyId, told),
            "The wrapped key was changed, or another key or another Vault wrapped it (was the key"
                + " deleted and created again?): restore the table's metadata, or the key from"
                + " Vault's backup.")
        : new IcebergCryptoException(
            String.format("%s does not wrap with key '%s' %s", config, keyId, told),
            "Look at the key: vault read " + path + ".");
  }

  /** The error for a key that does not exist, regardless of the answer. */
  KeyNotFoundException keyNotFound(String keyId) {
    return new KeyNotFoundException(
        String.format("%s has no key '%s'", config, keyId),
        String.format(
            "Check encryption.key-id and encryption.kms.vault.transit-mount. For a new table,"
                + " create the key: vault write -f %s/keys/%s, or"
                + " pyspark_iceberg_crypto.Vault(...).create_key('%s').%s",
            config.mount(), keyId, keyId, MasterKeys.IF_IN_USE));
  }

  /** The error for a token that Vault does not know. */
  LoginFailedException loginRefused(String keyId) {
    return new LoginFailedException(
        String.format(
            "%s: login refused for key '%s': the %s expired, was revoked, or is not of this Vault",
            config, keyId, config.login()),
        "Put a new token there (a token file is read again by itself), or log in by AppRole,"
            + " Kubernetes, JWT or TLS certificate, which makes tokens as it needs them.");
  }

  /**
   * The error for another answer of 403.
   *
   * @param lives whether the token is known to be good: some may not look themselves up
   */
  AccessDeniedException denied(
      boolean lives, JsonHttp.Answer answer, String operation, String keyId) {
    String problem =
        String.format(
            "%s: the %s may not %s with key '%s'", config, config.login(), operation, keyId);
    String policy =
        String.format(
            "Its policy needs: path \"%s/%s/%s\" { capabilities = [\"update\"] }",
            config.mount(), operation, keyId);
    return lives
        ? new AccessDeniedException(problem + ": its policies do not allow it", policy)
        : new AccessDeniedException(
                problem + ", or its login is refused because it expired " + VaultHttp.told(answer),
                "Check that the token is still valid (vault token lookup). " + policy)
            .ofKeyIf(false);
  }
}
