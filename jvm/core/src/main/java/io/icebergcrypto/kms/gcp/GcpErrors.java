package io.icebergcrypto.kms.gcp;

import com.google.api.client.http.HttpResponseException;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.GcpKmsClient;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.JsonHttp;
import java.io.EOFException;
import java.io.InterruptedIOException;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.Set;
import javax.net.ssl.SSLException;

/**
 * What Google's refusals mean: those of Cloud KMS, which are {@code google.rpc.Status} in JSON, and
 * those of the login before it, which are OAuth's (RFC 6749, section 5.2).
 *
 * @param kms how errors name the KMS
 * @param keyId the master key that was asked for
 */
public record GcpErrors(String kms, String keyId) {
  private static final Set<String> TRANSIENT =
      Set.of("RESOURCE_EXHAUSTED", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED");

  /**
   * The error for an answer of Cloud KMS that is not 200.
   *
   * @param verb what was asked: encrypt or decrypt
   * @param authenticated whether additional authenticated data was sent
   */
  public IcebergCryptoException of(JsonHttp.Answer answer, String verb, boolean authenticated) {
    int http = answer.status();
    JsonObject error = JsonHttp.object(answer.body(), "error");
    String status = JsonHttp.text(error, "status");
    String message = oneLine(JsonHttp.text(error, "message"));
    if (TRANSIENT.contains(status) || http == 429 || http >= 500 && http != 501) {
      return new KmsUnavailableException(
          problem("is not available for", "HTTP " + http + " " + status + " " + message),
          http == 429
              ? "The project's quota of Cloud KMS requests is used up: ask for a larger one, or"
                  + " keep keys in memory longer with "
                  + KmsProperties.CACHE_TTL_MS
                  + "."
              : "See Google Cloud's status page; for an external key, its key manager.");
    }

    return switch (status) {
      case "NOT_FOUND" ->
          new KeyNotFoundException(
              problem("has no", message),
              "Check project, location, key ring and key; make it with"
                  + " GcpKms(...).create_key(...) or `gcloud kms keys create`.");
      case "PERMISSION_DENIED" ->
          new AccessDeniedException(
              problem("does not let this login use", message), permissionHint(error, verb));
      case "UNAUTHENTICATED" ->
          new LoginFailedException(
              problem("refuses the login for", message),
              "Log in again, or replace the credentials file: the token is refused even when new.");
      case "FAILED_PRECONDITION" -> precondition(message);
      case "INVALID_ARGUMENT" -> invalid(message, verb, authenticated);
      default ->
          new InvalidConfigurationException(
              problem(
                  "answers HTTP " + http + " for",
                  status.isEmpty() ? "that is no answer of Cloud KMS" : status + " " + message),
              "Check " + GcpKmsClient.ENDPOINT + ", and any proxy on the way there.");
    };
  }

  private IcebergCryptoException precondition(String message) {
    if (message.contains("purpose")) {
      return wrongPurpose(message);
    }

    return new KeyDisabledException(
        problem("cannot use", message),
        "Enable or restore the key version that it names: `gcloud kms keys versions enable` or"
            + " `restore`. A destroyed one is gone, with all that it wrapped.");
  }

  private IcebergCryptoException invalid(String message, String verb, boolean authenticated) {
    if (message.contains("checksum")) {
      return new KmsUnavailableException(
          problem("got a damaged request for", message),
          "If it happens again, look for a proxy between here and Cloud KMS that changes"
              + " requests.");
    }

    if (message.contains("purpose")) {
      return wrongPurpose(message);
    }

    if (verb.equals("decrypt")) {
      return new BadWrappedKeyException(
          problem("cannot unwrap with", message),
          "The wrapped key was changed, or another key or KMS wrapped it"
              + (authenticated
                  ? ", or it was wrapped with other additional authenticated data, or none: see "
                  : ", or it was wrapped with additional authenticated data: see ")
              + GcpKmsClient.AAD
              + ".");
    }

    return new InvalidConfigurationException(
        problem("cannot wrap with", message),
        "Check the key's name and its location, and that "
            + GcpKmsClient.ENDPOINT
            + " serves that location.");
  }

  private NotSupportedException wrongPurpose(String message) {
    return new NotSupportedException(
        problem("cannot wrap with", message),
        "Use a key with purpose ENCRYPT_DECRYPT (`gcloud kms keys create --purpose=encryption`).");
  }

  private static String permissionHint(JsonObject error, String verb) {
    return switch (reason(error)) {
      case "SERVICE_DISABLED" ->
          "Enable the Cloud KMS API in the project of the login: `gcloud services enable"
              + " cloudkms.googleapis.com --project=PROJECT`.";
      case "ACCESS_TOKEN_SCOPE_INSUFFICIENT" ->
          "The machine's service account lacks the scope"
              + " https://www.googleapis.com/auth/cloudkms: give the machine cloud-platform.";
      case "USER_PROJECT_DENIED" ->
          "The credentials name a quota project that this login may not bill: grant"
              + " serviceusage.services.use there, or take quota_project_id out.";
      case "SECURITY_POLICY_VIOLATED" ->
          "A VPC Service Controls perimeter keeps this host out: ask its owner to let it in.";
      default ->
          "Grant cloudkms.cryptoKeyVersions."
              + (verb.equals("encrypt") ? "useToEncrypt" : "useToDecrypt")
              + " on the key to this login (GcpKms(...).driver_policy(...) prints how), and check"
              + " the key's name: Cloud KMS says the same for a key that does not exist.";
    };
  }

  /** The reason of a google.rpc.ErrorInfo among the details; empty when there is none. */
  private static String reason(JsonObject error) {
    JsonElement details = error.get("details");
    if (details != null && details.isJsonArray()) {
      for (JsonElement detail : details.getAsJsonArray()) {
        if (detail.isJsonObject()) {
          String reason = JsonHttp.text(detail.getAsJsonObject(), "reason");
          if (!reason.isEmpty()) {
            return reason;
          }
        }
      }
    }

    return "";
  }

  private String problem(String what, String detail) {
    return String.format("%s %s key '%s': %s", kms, what, keyId, detail.strip());
  }

  /**
   * The error for a login that failed.
   *
   * @param source where the credentials came from
   * @param cause what Google's library threw; what it says of the answer is told, without it being
   *     the error's cause, since it quotes whole answers
   */
  static IcebergCryptoException login(String kms, String keyId, String source, Throwable cause) {
    if (HeaderValues.areQuotedBy(cause)) {
      return refused(kms, keyId, source, "a token in between cannot be a header's value");
    }

    String innermost = "";
    for (Throwable each = cause; each != null; each = each.getCause()) {
      innermost = each.getMessage() == null ? innermost : each.getMessage();
      if (each instanceof HttpResponseException answer) {
        return loginAnswered(kms, keyId, source, answer);
      }

      if (JsonHttp.isUntrusted(each)) {
        return new InvalidConfigurationException(
            String.format(
                "%s: Google's login for key '%s': its TLS certificate is not trusted: %s",
                kms, keyId, oneLine(String.valueOf(each.getMessage()))),
            "Check the token_uri of " + source + ", and Java's trust store.");
      }

      if (isNetwork(each)) {
        return new KmsUnavailableException(
            String.format(
                "%s: Google's login for key '%s' cannot be reached: %s", kms, keyId, each),
            "Check the network between this host and the token_uri of " + source + ".");
      }
    }

    return refused(kms, keyId, source, oneLine(innermost));
  }

  private static IcebergCryptoException loginAnswered(
      String kms, String keyId, String source, HttpResponseException answer) {
    int status = answer.getStatusCode();
    if (status == 429 || status == 408 || status >= 500) {
      return new KmsUnavailableException(
          String.format("%s: Google's login for key '%s' answers HTTP %d", kms, keyId, status),
          "Try again; see Google Cloud's status page.");
    }

    return refused(kms, keyId, source, "HTTP " + status + " " + oauth(answer.getContent()));
  }

  private static LoginFailedException refused(String kms, String keyId, String source, String why) {
    boolean clock = why.contains("iat") && why.contains("exp") || why.contains("timeframe");
    return new LoginFailedException(
        String.format(
            "%s: Google refuses the login for key '%s' with %s: %s",
            kms, keyId, source, why.strip()),
        clock
            ? "Check this host's clock (NTP): Google accepts a login only minutes around its own"
                + " time."
            : "Check that the account exists and its key was not deleted or replaced; log in again"
                + " or make a new credentials file.");
  }

  /** OAuth's error code and description; nothing else of the answer. */
  public static String oauth(String content) {
    try {
      JsonElement parsed = JsonParser.parseString(content == null ? "" : content);
      if (parsed.isJsonObject()) {
        JsonObject body = parsed.getAsJsonObject();
        return oneLine(
            JsonHttp.text(body, "error") + " " + JsonHttp.text(body, "error_description"));
      }
    } catch (JsonParseException e) {
      // a proxy's page, say: the status tells
    }

    return "";
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
