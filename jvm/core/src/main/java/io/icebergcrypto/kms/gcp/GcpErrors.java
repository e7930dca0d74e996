package io.icebergcrypto.kms.gcp;

import com.google.api.client.http.HttpResponseException;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.ErrorTable;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.kms.http.Proxies;
import java.io.EOFException;
import java.io.InterruptedIOException;
import java.net.SocketException;
import java.net.URI;
import java.net.UnknownHostException;
import java.util.Map;
import javax.net.ssl.SSLException;

/**
 * What Google's refusals mean: those of Cloud KMS, which are {@code google.rpc.Status} in JSON, and
 * those of the login before it, which are OAuth's (RFC 6749, section 5.2).
 */
final class GcpErrors {
  /** By HTTP's status, Google's, its reason, what was asked, and the message. */
  private static final ErrorTable TABLE =
      ErrorTable.of(
          """
          KmsUnavailable <- ^429\s
          {kms} is not available for key '{key}': HTTP {http} {status} {message}
          The project's quota of Cloud KMS requests is used up: ask for a larger one, or keep keys \
          in memory longer with encryption.kms.cache.ttl-ms.

          KmsUnavailable <- ^\\d+ \
          (RESOURCE_EXHAUSTED|UNAVAILABLE|INTERNAL|DEADLINE_EXCEEDED|ABORTED) |^5(?!01)\\d\\d\s
          {kms} is not available for key '{key}': HTTP {http} {status} {message}
          See Google Cloud's status page; for an external key, its key manager.

          KeyNotFound <- ^\\d+ NOT_FOUND\s
          {kms} has no key '{key}': {message}
          Check project, location, key ring and key; make it with GcpKms(...).create_key(...) or \
          `gcloud kms keys create`.

          AccessDenied <- ^\\d+ PERMISSION_DENIED SERVICE_DISABLED\s
          {kms} does not let this login use key '{key}': {message}
          Enable the Cloud KMS API in the project of the login: `gcloud services enable \
          cloudkms.googleapis.com --project=PROJECT`.

          AccessDenied <- ^\\d+ PERMISSION_DENIED ACCESS_TOKEN_SCOPE_INSUFFICIENT\s
          {kms} does not let this login use key '{key}': {message}
          The machine's service account lacks the scope https://www.googleapis.com/auth/cloudkms: \
          give the machine cloud-platform.

          AccessDenied <- ^\\d+ PERMISSION_DENIED USER_PROJECT_DENIED\s
          {kms} does not let this login use key '{key}': {message}
          The credentials name a quota project that this login may not bill: grant \
          serviceusage.services.use there, or take quota_project_id out.

          AccessDenied <- ^\\d+ PERMISSION_DENIED SECURITY_POLICY_VIOLATED\s
          {kms} does not let this login use key '{key}': {message}
          A VPC Service Controls perimeter keeps this host out: ask its owner to let it in.

          AccessDenied <- ^\\d+ PERMISSION_DENIED\s
          {kms} does not let this login use key '{key}': {message}
          Grant cloudkms.cryptoKeyVersions.{permission} on the key to this login \
          (GcpKms(...).driver_policy(...) prints how), and check the key's name: Cloud KMS says \
          the same for a key that does not exist.

          LoginFailed <- ^\\d+ UNAUTHENTICATED\s
          {kms} refuses the login for key '{key}': {message}
          Log in again, or replace the credentials file: the token is refused even when new.

          KmsUnavailable <- ^\\d+ INVALID_ARGUMENT .*checksum
          {kms} got a damaged request for key '{key}': {message}
          If it happens again, look for a proxy between here and Cloud KMS that changes requests.

          NotSupported <- ^\\d+ (FAILED_PRECONDITION|INVALID_ARGUMENT) .*purpose
          {kms} cannot wrap with key '{key}': {message}
          Use a key with purpose ENCRYPT_DECRYPT (`gcloud kms keys create --purpose=encryption`).

          KeyDisabled <- ^\\d+ FAILED_PRECONDITION\s
          {kms} cannot use key '{key}': {message}
          Enable or restore the key version that it names: `gcloud kms keys versions enable` or \
          `restore`. A destroyed one is gone, with all that it wrapped.

          BadWrappedKey <- ^\\d+ INVALID_ARGUMENT \\S* decrypt\s
          {kms} cannot unwrap with key '{key}': {message}
          The wrapped key was changed, or another key or KMS wrapped it, or it was wrapped with \
          {aad}: see encryption.kms.gcp.additional-authenticated-data.

          InvalidConfiguration <- ^\\d+ INVALID_ARGUMENT\s
          {kms} cannot wrap with key '{key}': {message}
          Check the key's name and its location, and that encryption.kms.gcp.endpoint serves that \
          location.

          InvalidConfiguration <- ^\\d+ \s
          {kms} answers HTTP {http} for key '{key}': that is no answer of Cloud KMS
          Check encryption.kms.gcp.endpoint, and any proxy on the way there.

          InvalidConfiguration <-
          {kms} answers HTTP {http} for key '{key}': {status} {message}
          Check encryption.kms.gcp.endpoint, and any proxy on the way there.
          """);

  /** Of a login: by the kind of failure, and OAuth's answer. */
  private static final ErrorTable LOGIN =
      ErrorTable.of(
          """
          InvalidConfiguration <- ^untrusted
          {kms}: Google's login for key '{key}': its TLS certificate is not trusted: {said}
          Check the token_uri of {source}, and Java's trust store.

          KmsUnavailable <- ^network
          {kms}: Google's login for key '{key}' cannot be reached: {said}
          Check the network between this host and the token_uri of {source}.

          KmsUnavailable <- ^HTTP (429|408|5..)\s
          {kms}: Google's login for key '{key}' answers HTTP {1}
          Try again; see Google Cloud's status page.

          LoginFailed <- iat.*exp|exp.*iat|timeframe
          {kms}: Google refuses the login for key '{key}' with {source}: {said}
          Check this host's clock (NTP): Google accepts a login only minutes around its own time.

          LoginFailed <-
          {kms}: Google refuses the login for key '{key}' with {source}: {said}
          Check that the account exists and its key was not deleted or replaced; log in again or \
          make a new credentials file.
          """);

  /** Another one may be in the credentials; for what is said of a proxy. */
  private static final URI LOGIN_SERVICE = URI.create("https://oauth2.googleapis.com");

  private GcpErrors() {}

  /**
   * The error for an answer of Cloud KMS that is not 200.
   *
   * @param verb what was asked: encrypt or decrypt
   */
  static IcebergCryptoException of(
      GcpConfig config, String keyId, String verb, JsonHttp.Answer answer) {
    JsonObject error = JsonHttp.object(answer.body(), "error");
    String status = JsonHttp.text(error, "status");
    String message = oneLine(JsonHttp.text(error, "message"));
    return TABLE.error(
        String.join(" ", String.valueOf(answer.status()), status, reason(error), verb, message),
        Map.of(
            "kms", config,
            "key", keyId,
            "http", answer.status(),
            "status", status,
            "message", message,
            "permission", verb.equals("encrypt") ? "useToEncrypt" : "useToDecrypt",
            "aad",
                config.aad() == GcpConfig.Aad.NONE
                    ? "additional authenticated data"
                    : "other additional authenticated data, or none"),
        null);
  }

  /** The reason of a google.rpc.ErrorInfo among the details; empty when there is none. */
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
  static IcebergCryptoException login(
      GcpConfig config, String keyId, String source, Throwable failure) {
    if (Proxies.askForLogin(failure)) {
      return Proxies.loginAsked(
          String.format("%s: the login for key '%s' with %s", config, keyId, source),
          LOGIN_SERVICE);
    }

    String kind = "";
    String said = oneLine(Causes.innermostMessage(failure));
    if (HeaderValues.areQuotedBy(failure)) {
      said = "a token in between cannot be a header's value";
    } else {
      for (Throwable cause : (Iterable<Throwable>) Causes.of(failure)::iterator) {
        if (cause instanceof HttpResponseException answer) {
          said = "HTTP " + answer.getStatusCode() + " " + oauth(answer.getContent());
          break;
        }

        if (Causes.isUntrusted(cause)) {
          kind = "untrusted ";
          said = oneLine(String.valueOf(cause.getMessage()));
          break;
        }

        if (isNetwork(cause)) {
          kind = "network ";
          said = cause.toString();
          break;
        }
      }
    }

    return LOGIN.error(
        kind + said, Map.of("kms", config, "key", keyId, "source", source, "said", said), null);
  }

  /** OAuth's error code and description; nothing else of the answer. */
  static String oauth(String content) {
    JsonObject body = JsonHttp.object(content == null ? "" : content);
    return oneLine(JsonHttp.text(body, "error") + " " + JsonHttp.text(body, "error_description"));
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
