package io.icebergcrypto.kms.hadoop;

import com.google.gson.JsonObject;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.regex.Pattern;

/**
 * What Hadoop KMS's answers mean. It answers 500 to a missing key as well as to what fails in it,
 * so its messages decide.
 */
record HadoopErrors(HadoopConfig config) {
  /**
   * What Hadoop and Ranger say of a user who may not do something with a key; not of one who may
   * not impersonate another, or not from this host.
   */
  private static final Pattern OF_KEY =
      Pattern.compile("not allowed to do '|is not authorized to perform \\[");

  /** The error for an answer without a result. */
  IcebergCryptoException of(JsonHttp.Answer answer, String operation, String keyId) {
    JsonObject remote = JsonHttp.object(answer.body(), "RemoteException");
    String message = oneLine(JsonHttp.text(remote, "message"));
    String exception = oneLine(JsonHttp.text(remote, "exception"));
    String said = exception + " " + message;
    int http = answer.status();
    String told =
        message.isEmpty() ? "(HTTP " + http + ")" : "(HTTP " + http + ": " + message + ")";
    if (http == 401) {
      return new LoginFailedException(
          String.format(
              "%s: %s is refused for key '%s': the KMS asks for another login %s",
              config, config.login(), keyId, told),
          "With Kerberos: leave encryption.kms.hadoop.user out, and log in (kinit, or --principal"
              + " and --keytab of spark-submit).");
    }

    if ((http == 403 || http == 500) && said.contains("AuthorizationException")) {
      return new AccessDeniedException(
              String.format(
                  "%s: %s may not %s with key '%s' %s",
                  config, config.login(), operation, keyId, told),
              String.format(
                  "Allow it in kms-acls.xml: key.acl.%s.%s and hadoop.kms.acl.%s; with Ranger KMS,"
                      + " by a policy for the key.",
                  keyId, operation, operation))
          .ofKeyIf(OF_KEY.matcher(said).find());
    }

    if (http == 403) {
      return new LoginFailedException(
          String.format("%s: %s is refused for key '%s' %s", config, config.login(), keyId, told),
          "Log in again; check hadoop.kms.authentication.type on the KMS, and its log.");
    }

    if ((http == 400 || http == 404 || http == 500) && isMissing(said, keyId)) {
      return new KeyNotFoundException(
              String.format(
                  "%s has no key '%s', or no longer the version of it that is needed %s",
                  config, keyId, told),
              String.format(
                  "Check encryption.key-id. For a new table, create the key: hadoop key create %s"
                      + " -size 256, or pyspark_iceberg_crypto.HadoopKms(...).create_key('%s').%s"
                      + " Tables need every version that wrapped their keys.",
                  keyId, keyId, MasterKeys.IF_IN_USE))
          .ofKeyIf(operation.equals(HadoopKeys.GENERATE)); // on decrypt it names only the version
    }

    boolean noSuchPath = http == 500 && exception.startsWith("NotFoundException");
    if (http < 400 || http == 404 || http == 405 || noSuchPath) {
      return new InvalidConfigurationException(
          String.format(
              "%s does not answer as a Hadoop KMS does (for key '%s') %s", config, keyId, told),
          "Check encryption.kms.hadoop.uri: the path is /kms, and http or https what the KMS has;"
              + " is a proxy in between?");
    }

    return http == 429 || http / 100 == 5
        ? new KmsUnavailableException(
                String.format("%s failed (for key '%s') %s", config, keyId, told),
                "Look at the KMS's log, and at the load balancer before it.")
            .throttledIf(answer.isThrottled())
        : new IcebergCryptoException(
            String.format("%s did not %s with key '%s' %s", config, operation, keyId, told),
            "Look at the KMS's log for this request, and at the proxy before it.");
  }

  /** Whether the key or a version of it is missing, and not a part of the KMS itself. */
  private static boolean isMissing(String said, String keyId) {
    String version = "'" + Pattern.quote(keyId + "@") + "\\S+' (not found|does not exist)";
    return Pattern.compile("No KeyVersion exists for key|" + version).matcher(said).find();
  }

  private static String oneLine(String text) {
    return JsonHttp.shortened(text.replaceAll("[^\\x21-\\x7e]+", " ").strip());
  }
}
