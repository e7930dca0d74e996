package io.icebergcrypto.kms.hadoop;

import com.google.gson.JsonObject;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.ErrorTable;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;

/**
 * What Hadoop KMS's answers mean. It answers 500 to a missing key as well as to what fails in it,
 * so its messages decide.
 */
final class HadoopErrors {
  private static final int LONGEST_MESSAGE = 300;

  /** By status, operation, the name of the KMS's exception, and its message. */
  private static final ErrorTable TABLE =
      ErrorTable.of(
          """
          LoginFailed <- ^401\s
          {kms}: {login} is refused for key '{key}': the KMS asks for another login {told}
          With Kerberos: leave encryption.kms.hadoop.user out, and log in (kinit, or --principal \
          and --keytab of spark-submit).

          AccessDenied <- ^(403|500) .*AuthorizationException
          {kms}: {login} may not {operation} with key '{key}' {told}
          Allow it in kms-acls.xml: key.acl.{key}.{operation} and hadoop.kms.acl.{operation}; with \
          Ranger KMS, by a policy for the key.

          LoginFailed <- ^403\s
          {kms}: {login} is refused for key '{key}' {told}
          Log in again; check hadoop.kms.authentication.type on the KMS, and its log.

          KeyNotFound <- ^(400|404|500) .*(No KeyVersion exists|'\\S+' not found|does not exist)
          {kms} has no key '{key}', or no longer the version of it that is needed {told}
          Check encryption.key-id, or make the key: hadoop key create {key} -size 256, or \
          pyspark_iceberg_crypto.HadoopKms(...).create_key('{key}'). Tables need every version \
          that wrapped their keys.

          InvalidConfiguration <- ^((404|405|[23]..) |500 \\S+ NotFoundException)
          {kms} does not answer as a Hadoop KMS does (for key '{key}') {told}
          Check encryption.kms.hadoop.uri: the path is /kms, and http or https what the KMS has; \
          or is a proxy there?

          KmsUnavailable <- ^(429|5..)\s
          {kms} failed (for key '{key}') {told}
          Look at the KMS's log, and at the load balancer before it.

          IcebergCrypto <-
          {kms} did not {operation} with key '{key}' {told}
          Look at the KMS's log for this request, and at the proxy before it.
          """);

  private final HadoopConfig config;

  HadoopErrors(HadoopConfig config) {
    this.config = config;
  }

  /** The error for an answer without a result. */
  IcebergCryptoException of(JsonHttp.Answer answer, String operation, String keyId) {
    JsonObject remote = JsonHttp.object(answer.body(), "RemoteException");
    String message = oneLine(JsonHttp.text(remote, "message"));
    String exception = oneLine(JsonHttp.text(remote, "exception"));
    return TABLE.error(
        String.join(" ", String.valueOf(answer.status()), operation, exception, message),
        Map.of(
            "kms",
            config,
            "login",
            config.login(),
            "key",
            keyId,
            "operation",
            operation,
            "told",
            message.isEmpty()
                ? "(HTTP " + answer.status() + ")"
                : "(HTTP " + answer.status() + ": " + message + ")"),
        null);
  }

  private static String oneLine(String text) {
    String line = text.replaceAll("[^\\x21-\\x7e]+", " ").strip();
    return line.length() <= LONGEST_MESSAGE ? line : line.substring(0, LONGEST_MESSAGE) + "...";
  }
}
