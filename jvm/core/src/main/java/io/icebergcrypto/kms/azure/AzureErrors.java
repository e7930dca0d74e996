package io.icebergcrypto.kms.azure;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.ErrorTable;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import java.util.stream.Stream;

/**
 * What a vault's refusals mean. They are JSON: {@code {"error": {"code", "message", "innererror":
 * {"code"}}}}; the inner code is the one that tells (Azure's "Azure Key Vault REST API Error
 * Codes").
 *
 * @param config the vault
 * @param key the master key that was asked for
 * @param operation wrapkey, unwrapkey or versions
 * @param secrets what was sent and must not be shown, should the answer repeat it
 */
record AzureErrors(AzureConfig config, AzureKeyId key, String operation, String... secrets) {
  private static final int LONGEST = 300;

  /** By HTTP's status, Azure's code, its inner code, the operation and the message. */
  private static final ErrorTable TABLE =
      ErrorTable.of(
          """
          KmsUnavailable <- ^429\s
          {kms} is not available for {key}: {said}
          The vault's limit of transactions is reached: keep keys in memory longer with \
          encryption.kms.cache.ttl-ms, or use a vault of its own for these tables.

          KmsUnavailable <- ^(408|5..)\s
          {kms} is not available for {key}: {said}
          See Azure's status page.

          LoginFailed <- ^401\s
          {kms} does not accept the login for {key}: {said}
          The token is refused even when it is new: check that its tenant is the vault's \
          (AZURE_TENANT_ID), and this host's clock (NTP).

          KeyDisabled <- ^403 \\S+ (KeyDisabled |KeyExpired |KeyNotYetValid |.*((?i)disabled \
          key|expired key|not yet valid))
          {kms} does not let anyone use {key}: {said}
          Enable the key, or correct its activation or expiration date: `az keyvault key \
          set-attributes --enabled true` (--not-before, --expires), or rotate it.

          NotSupported <- ^403 \\S+ KeyOperationForbidden\s
          {kms} does not permit this operation with {key}: {said}
          The key's permitted operations (key_ops) need wrapKey and unwrapKey: `az keyvault key \
          set-attributes --ops wrapKey unwrapKey`, or use another key.

          AccessDenied <- ^403 \\S+ (ForbiddenByFirewall|ForbiddenByConnection|ForbiddenByNsp)\s
          {kms} may not be used from this network for {key}: {said}
          Allow this host's network in the vault's firewall, or connect by its private endpoint.

          AccessDenied <- ^403 \\S
          {kms} may not be used by this login for {key}: {said}
          Grant this login `{operation}` on the key: the role 'Key Vault Crypto Service Encryption \
          User' (Managed HSM: 'Managed HSM Crypto Service Encryption User') has what is needed; \
          AzureKeyVault(...).driver_policy(...) prints how.

          KeyNotFound <- ^(404|409) \\S
          {kms} has no {key}: {said}
          Check the name and the vault. A key that was deleted can be recovered while the vault \
          keeps it: `az keyvault key recover --name {name} ...`. A new one: \
          AzureKeyVault(...).create_key(...).

          NotSupported <- ^400 \\S.*((?i)incompatible|algorithm|\\balg\\b|key type|\\bkty\\b)
          {kms} cannot use {algorithm} with {key}: {said}
          Set encryption.kms.azure.algorithm to one that fits the key: RSA-OAEP-256 for RSA, \
          A256KW for a 256 bit AES key of a Managed HSM.

          BadWrappedKey <- ^400 \\S+ \\S* unwrapkey\s
          {kms} cannot unwrap with {key}: {said}
          The wrapped key was changed, or another key, version, algorithm or KMS wrapped it.

          InvalidConfiguration <- ^400 \\S
          {kms} cannot wrap with {key}: {said}
          Check the key and encryption.kms.azure.algorithm.

          InvalidConfiguration <-
          {kms} answers for {key}: HTTP {http} that is no answer of Key Vault's
          Check encryption.kms.azure.vault-url, and any proxy on the way there.
          """);

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
    String said =
        said(answer.status(), inner.isEmpty() ? code : inner, JsonHttp.text(error, "message"));
    return error(answer.status(), String.join(" ", "", code, inner, operation, "", said), said);
  }

  /** The error for an answer of 200 that no vault gives. */
  IcebergCryptoException notVault(int http) {
    return error(http, "", "");
  }

  private IcebergCryptoException error(int http, String told, String said) {
    return TABLE.error(
        http + told,
        Map.of(
            "kms",
            config,
            "key",
            String.format(
                "key '%s'%s",
                key.given(), key.isPinned() ? " (version " + key.version() + ")" : ""),
            "name",
            key.name(),
            "algorithm",
            config.algorithm(),
            "operation",
            operation.equals("versions") ? "list" : operation,
            "http",
            http,
            "said",
            said),
        null);
  }

  /** Azure's message on one line; left out where it repeats what must not be shown. */
  private String said(int http, String code, String message) {
    String shown = message.replaceAll("\\s+", " ").strip();
    if (Stream.of(secrets).anyMatch(message::contains)) {
      shown = "";
    } else if (shown.length() > LONGEST) {
      shown = shown.substring(0, LONGEST) + "...";
    }

    return String.format("HTTP %d %s %s", http, code, shown).strip();
  }
}
