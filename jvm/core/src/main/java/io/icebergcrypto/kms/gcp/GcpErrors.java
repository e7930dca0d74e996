package io.icebergcrypto.kms.gcp;

import com.google.api.client.http.HttpResponseException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
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
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.kms.http.Proxies;
import java.io.EOFException;
import java.io.InterruptedIOException;
import java.net.SocketException;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.Set;
import javax.net.ssl.SSLException;

/**
 * What Google's refusals mean: those of Cloud KMS, which are {@code google.rpc.Status} in JSON, and
 * those of the login before it, which are OAuth's (RFC 6749, section 5.2).
 */
record GcpErrors(GcpConfig config, String keyId) {
  private static final Set<String> NOT_NOW =
      Set.of("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED");

  /** Another one may be in the credentials; for what is said of a proxy. */
  private static final URI LOGIN_SERVICE = URI.create("https://oauth2.googleapis.com");

  /**
   * The error for an answer of Cloud KMS that is not 200.
   *
   * @param verb what was asked: encrypt or decrypt
   */
  IcebergCryptoException of(String verb, JsonHttp.Answer answer) {
    int http = answer.status();
    JsonObject error = JsonHttp.object(answer.body(), "error");
    String status = JsonHttp.text(error, "status");
    String message = oneLine(JsonHttp.text(error, "message"));
    if (http == 429 || isServerError(http) && http != 501 || NOT_NOW.contains(status)) {
      return new KmsUnavailableException(
              problem(
                  "is not available for key",
                  String.format("HTTP %d %s %s", http, status, message)),
              http == 429
                  ? "The project's quota of Cloud KMS requests is used up: ask for a larger one, or"
                      + " keep keys in memory longer with encryption.kms.cache.ttl-ms."
                  : "See Google Cloud's status page; for an external key, its key manager.")
          .throttledIf(answer.isThrottled() || status.equals("RESOURCE_EXHAUSTED"));
    }

    return switch (status) {
      case "NOT_FOUND" ->
          new KeyNotFoundException(
              problem("has no key", message),
              "Check project, location, key ring and key. For a new table, create the key with"
                  + " GcpKms(...).create_key(...) or `gcloud kms keys create`."
                  + MasterKeys.IF_IN_USE);
      case "PERMISSION_DENIED" ->
          new AccessDeniedException(
                  problem("does not let this login use key", message),
                  toBeAllowed(reason(error), verb))
              .ofKeyIf(isOfKey(reason(error), message));
      case "UNAUTHENTICATED" ->
          new LoginFailedException(
              problem("refuses the login for key", message),
              "Log in again, or replace the credentials file: even a new token is refused.");
      case "INVALID_ARGUMENT", "FAILED_PRECONDITION" -> invalid(status, verb, message);
      default ->
          new InvalidConfigurationException(
              problem(
                  String.format("answers HTTP %d for key", http),
                  status.isEmpty() ? "that is not an answer of Cloud KMS" : status + " " + message),
              "Check encryption.kms.gcp.endpoint, and any proxy on the way there.");
    };
  }

  /** Two statuses have several meanings, which only the message tells apart. */
  private IcebergCryptoException invalid(String status, String verb, String message) {
    boolean isArgument = status.equals("INVALID_ARGUMENT");
    if (isArgument && message.contains("checksum")) {
      return new KmsUnavailableException(
          problem("got a damaged request for key", message),
          "If it happens again, look for a proxy between here and Cloud KMS that changes"
              + " requests.");
    }

    if (message.contains("purpose")) {
      return new NotSupportedException(
          problem("cannot wrap with key", message),
          "Use a key with purpose ENCRYPT_DECRYPT (`gcloud kms keys create"
              + " --purpose=encryption`).");
    }

    if (!isArgument) {
      boolean isDisabled =
          message.contains("is not enabled") || message.contains("has no primary version");
      return isDisabled
          ? new KeyDisabledException(
                  problem("cannot use key", message),
                  "Enable or restore the key version that it names: `gcloud kms keys versions"
                      + " enable` or `restore`. A destroyed one is gone, with all that it wrapped.")
              .destroyedIf(message.contains("state is: DESTROY"))
          : new IcebergCryptoException(
              problem("cannot use key", message),
              "Do what the message says. If it is an external key (Cloud EKM), check its key"
                  + " manager and the connection to it.");
    }

    if (verb.equals("decrypt")) {
      return new BadWrappedKeyException(
          problem("cannot unwrap with key", message),
          String.format(
              "The wrapped key was changed, or another key or KMS wrapped it, or it was wrapped"
                  + " with %s: see encryption.kms.gcp.additional-authenticated-data.",
              config.aad() == GcpConfig.Aad.NONE
                  ? "additional authenticated data"
                  : "other additional authenticated data, or none"));
    }

    return new InvalidConfigurationException(
        problem("cannot wrap with key", message),
        "Check the key's name and its location, and that encryption.kms.gcp.endpoint serves that"
            + " location.");
  }

  /** Whether a permission on the key is missing, and not what all requests of this login need. */
  private static boolean isOfKey(String reason, String message) {
    return reason.equals("IAM_PERMISSION_DENIED")
        || reason.isEmpty() && message.startsWith("Permission 'cloudkms.cryptoKey");
  }

  private static String toBeAllowed(String reason, String verb) {
    return switch (reason) {
      case "SERVICE_DISABLED" ->
          "Enable the Cloud KMS API in the project of the login: `gcloud services enable"
              + " cloudkms.googleapis.com --project=PROJECT`.";
      case "ACCESS_TOKEN_SCOPE_INSUFFICIENT" ->
          "The machine's service account lacks the scope https://www.googleapis.com/auth/cloudkms:"
              + " give the machine cloud-platform.";
      case "USER_PROJECT_DENIED" ->
          "The credentials name a quota project that this login may not bill: grant"
              + " serviceusage.services.use there, or take quota_project_id out.";
      case "SECURITY_POLICY_VIOLATED" ->
          "A VPC Service Controls perimeter keeps this host out: ask its owner to let it in.";
      default ->
          String.format(
              "Grant cloudkms.cryptoKeyVersions.%s on the key to this login"
                  + " (GcpKms(...).driver_policy(...) prints how), and check the key's name: Cloud"
                  + " KMS says the same for a key that does not exist.",
              verb.equals("encrypt") ? "useToEncrypt" : "useToDecrypt");
    };
  }

  private String problem(String what, String said) {
    return String.format("%s %s '%s': %s", config, what, keyId, said).strip();
  }

  /** The reason of a google.rpc.ErrorInfo among the details; empty if it has none. */
  private static String reason(JsonObject error) {
    if (error.get("details") instanceof JsonArray details) {
      for (JsonElement detail : details) {
        String reason = detail instanceof JsonObject info ? JsonHttp.text(info, "reason") : "";
        if (!reason.isEmpty()) {
          return reason;
        }
      }
    }

    return "";
  }

  /**
   * The error for a login that failed. What Google's library threw is not its cause, since it
   * quotes whole answers.
   *
   * @param source where the credentials came from
   * @param failure what the library threw
   */
  IcebergCryptoException login(String source, Throwable failure) {
    if (Proxies.askForLogin(failure)) {
      return Proxies.loginAsked(
          String.format("%s: the login for key '%s' with %s", config, keyId, source),
          LOGIN_SERVICE);
    }

    if (HeaderValues.areQuotedBy(failure)) {
      return refused(source, "an intermediate token is not a valid header value");
    }

    String login = String.format("%s: Google's login for key '%s'", config, keyId);
    for (Throwable cause : (Iterable<Throwable>) Causes.of(failure)::iterator) {
      if (cause instanceof HttpResponseException answer) {
        int http = answer.getStatusCode();
        return http == 429 || http == 408 || isServerError(http)
            ? new KmsUnavailableException(
                    login + " answers HTTP " + http, "Try again; see Google Cloud's status page.")
                .throttledIf(http == 429)
            : refused(source, "HTTP " + http + " " + oauth(answer.getContent()));
      }

      if (Causes.isUntrusted(cause)) {
        String said = oneLine(String.valueOf(cause.getMessage()));
        return new InvalidConfigurationException(
            (login + ": its TLS certificate is not trusted: " + said).strip(),
            "Check the token_uri of " + source + ", and Java's trust store.");
      }

      if (isNetwork(cause)) {
        return new KmsUnavailableException(
            (login + " cannot be reached: " + cause).strip(),
            "Check the network between this host and the token_uri of " + source + ".");
      }
    }

    return refused(source, oneLine(Causes.innermostMessage(failure)));
  }

  private LoginFailedException refused(String source, String said) {
    String problem =
        String.format("%s: Google refuses the login for key '%s' with %s", config, keyId, source);
    // "... in a reasonable timeframe. Check your iat and exp values"
    boolean isClock = said.contains("timeframe") || said.contains("iat") && said.contains("exp");
    return new LoginFailedException(
        (problem + ": " + said).strip(),
        isClock
            ? "Check this host's clock (NTP): Google accepts a login only minutes around its own"
                + " time."
            : "Check that the account exists and its key was not deleted or replaced; log in again"
                + " or make a new credentials file.");
  }

  /** OAuth's error code and description; nothing else of the answer. */
  static String oauth(String content) {
    JsonObject body = JsonHttp.object(content == null ? "" : content);
    return oneLine(JsonHttp.text(body, "error") + " " + JsonHttp.text(body, "error_description"));
  }

  private static boolean isServerError(int http) {
    return http / 100 == 5;
  }

  private static boolean isNetwork(Throwable e) {
    return e instanceof SocketException
        || e instanceof UnknownHostException
        || e instanceof InterruptedIOException
        || e instanceof EOFException
        || "Premature EOF".equals(e.getMessage()) // the JDK's, of no type of its own
        || e instanceof SSLException;
  }

  private static String oneLine(String text) {
    return text.replaceAll("\\s+", " ");
  }
}
