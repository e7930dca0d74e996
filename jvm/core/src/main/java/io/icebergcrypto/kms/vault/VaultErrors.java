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
import io.icebergcrypto.kms.VaultKmsClient;
import io.icebergcrypto.kms.http.JsonHttp;

/**
 * What Vault's answers about a key mean. Vault has few status codes (400 is a bad ciphertext as
 * well as a missing key), so its words decide; words that a version changes end in the plain error
 * with Vault's own text.
 */
public final class VaultErrors {
  /** Vault's words for a token that is none, or is one no more. */
  private static final String INVALID_TOKEN = "invalid token";

  private static final String USE_OTHER_KEY =
      "Use a key of type aes256-gcm96, aes128-gcm96 or chacha20-poly1305 that is not derived, as"
          + " pyspark_iceberg_crypto.Vault(...).create_key(...) makes.";

  private final VaultConfig config;

  public VaultErrors(VaultConfig config) {
    this.config = config;
  }

  public static boolean isInvalidToken(JsonHttp.Answer answer) {
    return VaultHttp.words(answer).contains(INVALID_TOKEN);
  }

  /** An answer to encrypt or decrypt that says the key is not there. */
  public static boolean isMissingKey(JsonHttp.Answer answer) {
    String words = VaultHttp.words(answer);
    return answer.status() == 400
        && (words.contains("encryption key not found")
            || words.contains(VaultKmsClient.NEVER_CREATE_WORDS));
  }

  /**
   * The error for an answer that brings nothing to use, and is no 403.
   *
   * @param operation encrypt or decrypt
   */
  public IcebergCryptoException of(JsonHttp.Answer answer, String operation, String keyId) {
    if (isMissingKey(answer)) {
      return keyNotFound(keyId);
    }

    if (answer.status() == 400) {
      return badRequest(answer, operation, keyId);
    }

    int status = answer.status();
    if (status == 404 || status == 405 || status < 300) {
      return noTransit(answer, keyId);
    }

    return new IcebergCryptoException(
        String.format(
            "%s did not %s with key '%s' %s", config, operation, keyId, VaultHttp.told(answer)),
        "Look at Vault's log for this request, and at the proxy or load balancer before it.");
  }

  public IcebergCryptoException keyNotFound(String keyId) {
    return new KeyNotFoundException(
        String.format("%s has no key '%s'", config, keyId),
        String.format(
            "Check encryption.key-id and %s, or make the key: vault write -f %s/keys/%s, or"
                + " pyspark_iceberg_crypto.Vault(...).create_key('%s').",
            VaultConfig.TRANSIT_MOUNT, config.mount(), keyId, keyId));
  }

  /** Vault does not know the token. */
  public IcebergCryptoException invalidToken(String keyId) {
    return new LoginFailedException(
        String.format(
            "%s: login refused for key '%s': the %s expired, was revoked, or is not of this Vault",
            config, keyId, config.login()),
        "Put a new token there (a token file is read again by itself), or log in by AppRole,"
            + " Kubernetes, JWT or TLS certificate, which makes tokens as it needs them.");
  }

  /** The token is good and its policies do not allow it. */
  public IcebergCryptoException forbidden(String operation, String keyId) {
    return new AccessDeniedException(
        String.format(
            "%s: the %s may not %s with key '%s': its policies do not allow it",
            config, config.login(), operation, keyId),
        grant(operation, keyId));
  }

  /** Vault refused, and the token may not ask Vault about itself. */
  public IcebergCryptoException refused(JsonHttp.Answer answer, String operation, String keyId) {
    return new AccessDeniedException(
        String.format(
            "%s: the %s may not %s with key '%s', or its login is refused because it expired %s",
            config, config.login(), operation, keyId, VaultHttp.told(answer)),
        "Check that the token lives (vault token lookup). " + grant(operation, keyId));
  }

  /** What answered is no transit engine. */
  IcebergCryptoException noTransit(JsonHttp.Answer answer, String keyId) {
    return new InvalidConfigurationException(
        String.format(
            "%s: key '%s' cannot be used, there is no transit engine at '%s' %s",
            config, keyId, config.mount(), VaultHttp.told(answer)),
        String.format(
            "Enable it (vault secrets enable -path=%s transit), or set %s and %s to where it is.",
            config.mount(), VaultConfig.TRANSIT_MOUNT, VaultConfig.NAMESPACE));
  }

  /** Adds the key to an error of the connection or the login, which do not know it. */
  public IcebergCryptoException about(String keyId, IcebergCryptoException e) {
    String problem = "Key '" + keyId + "' cannot be used: " + e.problem();
    if (e instanceof KmsUnavailableException) {
      return new KmsUnavailableException(problem, e.hint(), e);
    }

    if (e instanceof LoginFailedException) {
      return new LoginFailedException(problem, e.hint(), e);
    }

    if (e instanceof AccessDeniedException) {
      return new AccessDeniedException(problem, e.hint(), e);
    }

    if (e instanceof InvalidConfigurationException) {
      return new InvalidConfigurationException(problem, e.hint(), e);
    }

    return e;
  }

  private IcebergCryptoException badRequest(
      JsonHttp.Answer answer, String operation, String keyId) {
    String words = VaultHttp.words(answer);
    if (words.contains("missing 'context' for key derivation")) {
      return new NotSupportedException(
          String.format("Key '%s' of %s is a derived key", keyId, config), USE_OTHER_KEY);
    }

    if (words.contains("non-AEAD cipher") || words.contains("not supported for key type")) {
      return new NotSupportedException(
          String.format(
              "Key '%s' of %s is of a type that cannot wrap keys with authentication %s",
              keyId, config, VaultHttp.told(answer)),
          USE_OTHER_KEY);
    }

    if (words.contains("disallowed by policy (too old)")) {
      return new KeyDisabledException(
          String.format(
              "%s no longer unwraps with the version of key '%s' that wrapped this: the key's"
                  + " min_decryption_version is above it",
              config, keyId),
          String.format(
              "Lower it: vault write %s/keys/%s/config min_decryption_version=N. Tables"
                  + " need every version that wrapped their keys.",
              config.mount(), keyId));
    }

    if (operation.equals(VaultKmsClient.DECRYPT)) {
      return new BadWrappedKeyException(
          String.format(
              "%s does not unwrap a key that names '%s' as its master key %s",
              config, keyId, VaultHttp.told(answer)),
          "The wrapped key was changed, or another key or another Vault wrapped it (was the key"
              + " deleted and made again?): restore the table's metadata, or the key from Vault's"
              + " backup.");
    }

    return new IcebergCryptoException(
        String.format("%s does not wrap with key '%s' %s", config, keyId, VaultHttp.told(answer)),
        "Look at the key: vault read " + config.mount() + "/keys/" + keyId + ".");
  }

  private String grant(String operation, String keyId) {
    return String.format(
        "Its policy needs: path \"%s/%s/%s\" { capabilities = [\"update\"] }",
        config.mount(), operation, keyId);
  }
}
