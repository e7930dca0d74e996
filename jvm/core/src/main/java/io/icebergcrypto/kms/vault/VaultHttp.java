package io.icebergcrypto.kms.vault;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.config.SecretHash;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.http.JsonHttp;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Vault's HTTP API: paths, headers, the one redirect of a standby, and Vault's own messages. */
final class VaultHttp {
  private static final Logger LOG = LoggerFactory.getLogger(VaultHttp.class);

  private final VaultConfig config;
  private final AtomicReference<Connections> connections = new AtomicReference<>();

  /**
   * Connections, all with one client certificate and one set of trusted authorities.
   *
   * @param files a hash of the files that these were read from
   */
  private record Connections(JsonHttp http, String files) {}

  /** Makes one that connects when it is asked. */
  VaultHttp(VaultConfig config) {
    this.config = config;
  }

  /**
   * Asks by POST.
   *
   * @param path below {@code /v1/}
   * @param token null for a login
   * @return an answer with any status except those that say the server cannot answer now
   * @throws KmsUnavailableException when Vault cannot be reached, is sealed, busy or broken
   * @throws InvalidConfigurationException when the CA file, or a client certificate's file, has no
   *     certificates
   */
  JsonHttp.Answer post(String path, String token, JsonObject body) {
    return ask(path, token, body);
  }

  /** Asks by GET; as {@link #post}. */
  JsonHttp.Answer get(String path, String token) {
    return ask(path, token, null);
  }

  private JsonHttp.Answer ask(String path, String token, JsonObject body) {
    URI uri = URI.create(config.address() + "/v1/" + path);
    Map<String, String> headers = headers(token);
    JsonHttp http = http();
    JsonHttp.Answer answer = http.ask(uri, headers, body);
    return available(redirected(http, uri, answer, headers, body));
  }

  /**
   * What Vault said was wrong, on one line, and shortened: its answers to errors hold no secrets.
   */
  static String message(JsonHttp.Answer answer) {
    List<String> errors = new ArrayList<>();
    JsonElement found = answer.body().get("errors");
    if (found instanceof JsonArray array) {
      for (JsonElement error : array) {
        errors.add(error.isJsonPrimitive() ? error.getAsString() : error.toString());
      }
    }

    return JsonHttp.shortened(String.join("; ", errors).replaceAll("[^\\x21-\\x7e]+", " ").strip());
  }

  /** {@link #message} in brackets after the status, for the end of a sentence. */
  static String told(JsonHttp.Answer answer) {
    String message = message(answer);
    return message.isEmpty()
        ? "(HTTP " + answer.status() + ")"
        : "(HTTP " + answer.status() + ": " + message + ")";
  }

  private Map<String, String> headers(String token) {
    Map<String, String> headers = new TreeMap<>();
    headers.put(
        "X-Vault-Request", "true"); // what Vault's own clients send, against forged requests
    if (config.namespace() != null) {
      headers.put("X-Vault-Namespace", config.namespace());
    }

    if (token != null) {
      headers.put("X-Vault-Token", token);
    }

    return headers;
  }

  /** A standby that does not forward sends clients to the active node; once is enough. */
  private JsonHttp.Answer redirected(
      JsonHttp http,
      URI asked,
      JsonHttp.Answer answer,
      Map<String, String> headers,
      JsonObject body) {
    if (answer.status() != 307 && answer.status() != 308) {
      return answer;
    }

    URI active = redirection(asked, answer);
    boolean downgrade = HttpsAddress.isHttps(asked) && !HttpsAddress.isHttps(active);
    if (downgrade || active.equals(asked)) {
      throw notVault(answer);
    }

    if (!HttpsAddress.isPrivate(active) && !config.allowHttp()) {
      throw new InvalidConfigurationException(
          String.format(
              "%s redirects to %s over http, which would send tokens and keys there in plaintext",
              config, active.getHost()),
          String.format(
              "Give the active server's https address as %s, or set %s=true if something else"
                  + " encrypts the connection.",
              VaultConfig.ADDRESS, VaultConfig.ALLOW_HTTP));
    }

    if (!apiPath(asked).equals(apiPath(active))) {
      throw notVault(answer);
    }

    return http.ask(active, headers, body);
  }

  private URI redirection(URI asked, JsonHttp.Answer answer) {
    try {
      URI active = asked.resolve(answer.location());
      return HttpsAddress.parse(active.toString()).orElseThrow(() -> notVault(answer));
    } catch (IllegalArgumentException e) {
      throw notVault(answer);
    }
  }

  /** A standby redirects to the same request; a proxy's login page is another one. */
  private static String apiPath(URI uri) {
    String path = String.valueOf(uri.getRawPath());
    return path.substring(Math.max(0, path.indexOf("/v1/")));
  }

  /** With the client certificate and the CA file as they are now: they may have been replaced. */
  private JsonHttp http() {
    Connections now = connections.get();
    ClientCertificate certificate = config.auth() == null ? null : config.auth().certificate();
    if (now != null && certificate == null && config.caFile() == null) {
      return now.http();
    }

    Connections next;
    try {
      next = connections(certificate, now);
    } catch (IcebergCryptoException e) {
      if (now == null) {
        throw e;
      }

      LOG.warn("{}: the previous certificates stay in use: {}", config, e.problem());
      return now.http();
    }

    connections.set(next);
    return next.http();
  }

  private Connections connections(ClientCertificate certificate, Connections now) {
    ClientCertificate.Pem pem = certificate == null ? null : certificate.read();
    Path caFile = config.caFile() == null ? null : Path.of(config.caFile());
    String hash =
        (pem == null ? "" : SecretHash.of(pem.certificates() + pem.privateKey()))
            + (caFile == null ? "" : SecretSource.contentHash(caFile));
    if (now != null && now.files().equals(hash)) {
      return now;
    }

    JsonHttp http =
        new JsonHttp(
            config.toString(),
            config.timeLimit(),
            caFile,
            pem == null ? null : certificate.keyManagers(pem));
    return new Connections(http, hash);
  }

  private JsonHttp.Answer available(JsonHttp.Answer answer) {
    int status = answer.status();
    if (status == 429 || status == 412 || status == 472 || status == 473 || status >= 500) {
      throw unavailable(answer);
    }

    if (status >= 300 && (status < 400 || !answer.body().has("errors"))) {
      throw notVault(answer); // Vault's own refusals have errors
    }

    return answer;
  }

  private KmsUnavailableException unavailable(JsonHttp.Answer answer) {
    return switch (answer.status()) {
      case 412, 472, 473 ->
          unavailable(
              answer,
              "answers from a standby that cannot serve the request",
              "Try again; if it persists, give the address of the active cluster.");
      case 429 ->
          unavailable(
              answer,
              "has too many requests",
              "Raise the rate limit (sys/quotas/rate-limit), or send fewer: raise the key cache's"
                  + " TTL.");
      case 501 ->
          unavailable(
              answer,
              "is not initialised",
              "If tables use a Vault already, this is not theirs: use the one that they were"
                  + " written with, or restore it. Otherwise initialise and unseal it: vault"
                  + " operator init, vault operator unseal.");
      case 503 ->
          message(answer).contains("sealed")
              ? unavailable(
                  answer,
                  "is sealed",
                  "Unseal it (vault operator unseal), or initialise it if it is new and no table"
                      + " was written with it.")
              : unavailable(
                  answer,
                  "has no active server",
                  "Look at vault status on its servers, and at the load balancer before them.");
      default ->
          unavailable(
              answer,
              "failed",
              "Look at Vault's log, and at the proxy or load balancer before it.");
    };
  }

  private KmsUnavailableException unavailable(JsonHttp.Answer answer, String what, String hint) {
    return new KmsUnavailableException(String.format("%s %s %s", config, what, told(answer)), hint)
        .throttledIf(answer.isThrottled());
  }

  /** The error for an answer that no Vault gives. */
  IcebergCryptoException notVault(JsonHttp.Answer answer) {
    return new InvalidConfigurationException(
        String.format("%s does not answer as Vault does %s", config, told(answer)),
        "Check "
            + VaultConfig.ADDRESS
            + ": is a proxy or another server there, or http where https should be?");
  }
}
