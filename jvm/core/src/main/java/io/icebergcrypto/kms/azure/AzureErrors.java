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
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Locale;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * What a vault's refusals mean. They are JSON: {@code {"error": {"code", "message", "innererror":
 * {"code"}}}}; the inner code is the one that tells (Azure's "Azure Key Vault REST API Error
 * Codes").
 *
 * @param config the vault
 * @param key the master key that was asked for
 * @param operation wrapkey, unwrapkey or versions
 * @param secrets what was sent and must not be told, should the answer repeat it
 */
public record AzureErrors(AzureConfig config, AzureKeyId key, String operation, String... secrets) {
  private static final int LONGEST = 300;
  private static final Pattern ALGORITHM =
      Pattern.compile("(?i)incompatible|algorithm|\\balg\\b|key type|\\bkty\\b");

  /** The same, with one more thing that must not be told. */
  AzureErrors hiding(String secret) {
    return new AzureErrors(
        config,
        key,
        operation,
        Stream.concat(Stream.of(secrets), Stream.of(secret)).toArray(String[]::new));
  }

  /** The error for an answer that is not 200. */
  public IcebergCryptoException of(JsonHttp.Answer answer) {
    int http = answer.status();
    JsonObject error = JsonHttp.object(answer.body(), "error");
    String code = JsonHttp.text(error, "code");
    String inner = JsonHttp.text(JsonHttp.object(error, "innererror"), "code");
    String said = said(http, inner.isEmpty() ? code : inner, JsonHttp.text(error, "message"));
    if (http == 429 || http == 408 || http >= 500) {
      return new KmsUnavailableException(
          problem("is not available for", said),
          http == 429
              ? "The vault's limit of transactions is reached: keep keys in memory longer with "
                  + KmsProperties.CACHE_TTL_MS
                  + ", or use a vault of its own for these tables."
              : "See Azure's status page.");
    }

    if (http == 401) {
      return new LoginFailedException(
          problem("does not accept the login for", said),
          "The token is refused even when it is new: check that its tenant is the vault's"
              + " (AZURE_TENANT_ID), and this host's clock (NTP).");
    }

    if (code.isEmpty()) {
      return notVault(http);
    }

    return switch (http) {
      case 403 -> forbidden(inner, said);
      case 404, 409 ->
          new KeyNotFoundException(
              problem("has no", said),
              "Check the name and the vault. A key that was deleted can be recovered while the"
                  + " vault keeps it: `az keyvault key recover --name "
                  + key.name()
                  + " ...`. A new one: AzureKeyVault(...).create_key(...).");
      case 400 -> badRequest(said);
      default -> notVault(http);
    };
  }

  /** The error for an answer of 200 that no vault gives. */
  InvalidConfigurationException notVault(int http) {
    return new InvalidConfigurationException(
        problem("answers for", "HTTP " + http + " that is no answer of Key Vault's"),
        "Check " + AzureConfig.VAULT_URL + ", and any proxy on the way there.");
  }

  private IcebergCryptoException forbidden(String inner, String said) {
    String lower = said.toLowerCase(Locale.ROOT);
    if (inner.equals("KeyDisabled")
        || inner.equals("KeyExpired")
        || inner.equals("KeyNotYetValid")
        || lower.contains("disabled key")
        || lower.contains("expired key")
        || lower.contains("not yet valid")) {
      return new KeyDisabledException(
          problem("does not let anyone use", said),
          "Enable the key, or correct its activation or expiration date: `az keyvault key"
              + " set-attributes --enabled true` (--not-before, --expires), or rotate it.");
    }

    if (inner.equals("KeyOperationForbidden")) {
      return new NotSupportedException(
          problem("does not permit this operation with", said),
          "The key's permitted operations (key_ops) need wrapKey and unwrapKey: `az keyvault key"
              + " set-attributes --ops wrapKey unwrapKey`, or use another key.");
    }

    if (inner.equals("ForbiddenByFirewall")
        || inner.equals("ForbiddenByConnection")
        || inner.equals("ForbiddenByNsp")) {
      return new AccessDeniedException(
          problem("may not be used from this network for", said),
          "Allow this host's network in the vault's firewall, or connect by its private endpoint.");
    }

    return new AccessDeniedException(
        problem("may not be used by this login for", said),
        "Grant this login `"
            + (operation.equals("versions") ? "list" : operation)
            + "` on the key: the role 'Key Vault Crypto Service Encryption User' (Managed HSM:"
            + " 'Managed HSM Crypto Service Encryption User') has what is needed;"
            + " AzureKeyVault(...).driver_policy(...) prints how.");
  }

  private IcebergCryptoException badRequest(String said) {
    if (ALGORITHM.matcher(said).find()) {
      return new NotSupportedException(
          problem("cannot use " + config.algorithm() + " with", said),
          "Set "
              + AzureConfig.ALGORITHM
              + " to one that fits the key: RSA-OAEP-256 for RSA, A256KW for a 256 bit AES key of a"
              + " Managed HSM.");
    }

    if (operation.equals("unwrapkey")) {
      return new BadWrappedKeyException(
          problem("cannot unwrap with", said),
          "The wrapped key was changed, or another key, version, algorithm or KMS wrapped it.");
    }

    return new InvalidConfigurationException(
        problem("cannot wrap with", said), "Check the key and " + AzureConfig.ALGORITHM + ".");
  }

  private String problem(String what, String said) {
    String version = key.isPinned() ? " (version " + key.version() + ")" : "";
    return String.format("%s %s key '%s'%s: %s", config, what, key.given(), version, said);
  }

  /** Azure's words, on one line; none where they repeat what must not be told. */
  private String said(int http, String code, String message) {
    String words = message.replaceAll("\\s+", " ").strip();
    if (Stream.of(secrets).anyMatch(message::contains)) {
      words = "";
    } else if (words.length() > LONGEST) {
      words = words.substring(0, LONGEST) + "...";
    }

    return String.format("HTTP %d %s %s", http, code, words).strip();
  }
}
