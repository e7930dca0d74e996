package io.icebergcrypto.kms.azure;

import com.google.gson.JsonObject;
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
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What a vault's refusals mean. They are JSON: {@code {"error": {"code", "message", "innererror":
 * {"code"}}}}; the inner code is the one that counts (Azure's "Azure Key Vault REST API Error
 * Codes").
 *
 * @param config the vault
 * @param key the master key that was asked for
 * @param operation wrapkey, unwrapkey or versions
 * @param secrets what was sent and must not be shown, should the answer repeat it
 */
record AzureErrors(AzureConfig config, AzureKeyId key, String operation, String... secrets) {
  private static final Pattern UNUSABLE =
      Pattern.compile("(?i)disabled key|expired key|not yet valid");

  private static final Pattern UNFIT =
      Pattern.compile("(?i)incompatible|algorithm|\\balg\\b|key type|\\bkty\\b");

  /** The codes of a permission on the key that this login lacks. */
  private static final Set<String> OF_KEY =
      Set.of("ForbiddenByPolicy", "ForbiddenByRbac", "AccessDenied");

  /** The same, with one more secret. */
  AzureErrors hiding(String secret) {
    return new AzureErrors(
        config,
        key,
        operation,
        Stream.concat(Stream.of(secrets), Stream.of(secret)).toArray(String[]::new));
  }

  /** The error for an answer that is not 200. */
  IcebergCryptoException of(JsonHttp.Answer answer) {
    JsonObject error = JsonHttp.object(answer.body(), "error");
    String code = JsonHttp.text(error, "code");
    String inner = JsonHttp.text(JsonHttp.object(error, "innererror"), "code");
    int http = answer.status();
    String said = said(http, inner.isEmpty() ? code : inner, JsonHttp.text(error, "message"));
    if (http == 429 || http == 408 || http / 100 == 5) {
      return new KmsUnavailableException(
              problem("is not available for key", said),
              http == 429
                  ? "The vault's limit of transactions is reached: keep keys in memory longer with"
                      + " encryption.kms.cache.ttl-ms, or use a vault of its own for these tables."
                  : "See Azure's status page.")
          .throttledIf(answer.isThrottled());
    }

    if (http == 401) {
      return new LoginFailedException(
          problem("does not accept the login for key", said),
          "Even a new token is refused: check that its tenant is the vault's (AZURE_TENANT_ID), and"
              + " this host's clock (NTP).");
    }

    if (code.isBlank()) {
      return notVault(http);
    }

    return switch (http) {
      case 400 -> badRequest(code, said);
      case 403 -> forbidden(inner.isEmpty() ? code : inner, said); // Managed HSM has no inner one
      case 409 ->
          new KmsUnavailableException(
              problem("is deleting or recovering key", said),
              "Try again when that is finished: `az keyvault key list-deleted` shows deleted"
                  + " keys.");
      case 404 ->
          new KeyNotFoundException(
              problem("has no key", said),
              String.format(
                  "Check the name and the vault. A key that was deleted can be recovered while the"
                      + " vault keeps it: `az keyvault key recover --name %s ...`. For a new table,"
                      + " create the key: AzureKeyVault(...).create_key(...).%s",
                  key.name(), MasterKeys.IF_IN_USE));
      default -> notVault(http);
    };
  }

  /** Only the text tells an algorithm that does not fit from a damaged key. */
  private IcebergCryptoException badRequest(String code, String said) {
    if (UNFIT.matcher(code + " " + said).find()) {
      return new NotSupportedException(
          problem("cannot use " + config.algorithm() + " with key", said),
          "Set encryption.kms.azure.algorithm to one that fits the key: RSA-OAEP-256 for RSA,"
              + " A256KW for a 256 bit AES key of a Managed HSM.");
    }

    return operation.equals("unwrapkey")
        ? new BadWrappedKeyException(
            problem("cannot unwrap with key", said),
            "The wrapped key was changed, or another key, version, algorithm or KMS wrapped it.")
        : new InvalidConfigurationException(
            problem("cannot wrap with key", said),
            "Check the key and encryption.kms.azure.algorithm.");
  }

  private IcebergCryptoException forbidden(String reason, String said) {
    return switch (UNUSABLE.matcher(said).find() ? "KeyDisabled" : reason) {
      case "KeyDisabled", "KeyExpired", "KeyNotYetValid" ->
          new KeyDisabledException(
              problem("does not let anyone use key", said),
              "Enable the key, or correct its activation or expiration date: `az keyvault key"
                  + " set-attributes --enabled true` (--not-before, --expires), or rotate it.");
      case "KeyOperationForbidden" ->
          new NotSupportedException(
              problem("does not permit this operation with key", said),
              "The key's permitted operations (key_ops) need wrapKey and unwrapKey: `az keyvault"
                  + " key set-attributes --ops wrapKey unwrapKey`, or use another key.");
      case "ForbiddenByFirewall", "ForbiddenByConnection", "ForbiddenByNsp" ->
          new AccessDeniedException(
                  problem("may not be used from this network for key", said),
                  "Allow this host's network in the vault's firewall, or connect by its private"
                      + " endpoint.")
              .ofKeyIf(false);
      default ->
          new AccessDeniedException(
                  problem("may not be used by this login for key", said),
                  String.format(
                      "Grant this login `%s` on the key: the role 'Key Vault Crypto Service"
                          + " Encryption User' (Managed HSM: 'Managed HSM Crypto Service Encryption"
                          + " User') has what is needed; AzureKeyVault(...).driver_policy(...)"
                          + " prints how.",
                      operation.equals("versions") ? "list" : operation))
              .ofKeyIf(OF_KEY.contains(reason));
    };
  }

  /** The error for an answer that no vault gives. */
  IcebergCryptoException notVault(int http) {
    return new InvalidConfigurationException(
        problem("answers for key", "HTTP " + http + ", which is not an answer of Key Vault"),
        "Check encryption.kms.azure.vault-url, and any proxy on the way there.");
  }

  private String problem(String what, String said) {
    String version = key.isPinned() ? " (version " + key.version() + ")" : "";
    return String.format("%s %s '%s'%s: %s", config, what, key.given(), version, said);
  }

  /** Azure's message on one line; left out where it repeats what must not be shown. */
  private String said(int http, String code, String message) {
    boolean repeats = Stream.of(secrets).anyMatch(message::contains);
    String shown = repeats ? "" : JsonHttp.shortened(message.replaceAll("\\s+", " ").strip());

    return String.format("HTTP %d %s %s", http, code, shown).strip();
  }
}
