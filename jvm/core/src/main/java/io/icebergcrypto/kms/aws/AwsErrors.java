package io.icebergcrypto.kms.aws;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.call.ErrorTable;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.Proxies;
import java.io.IOException;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import software.amazon.awssdk.awscore.exception.AwsErrorDetails;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.exception.ApiCallAttemptTimeoutException;
import software.amazon.awssdk.core.exception.ApiCallTimeoutException;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.core.util.VersionInfo;

/**
 * What the errors of the AWS SDK mean.
 *
 * @see <a href="https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html">Decrypt</a>
 * @see <a href="https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html">Common
 *     errors</a>
 */
record AwsErrors(AwsConfig config) {
  private static final Pattern KEY_ARN =
      Pattern.compile("arn:[^:]+:kms:(?<region>[^:]+):[0-9]*:(?:key|alias)/(?<name>.+)");

  private static final Pattern KEY_ID = Pattern.compile("(?:mrk-)?[0-9a-f-]{32,36}");

  /** What any service answers to a login that it refuses, without "Exception" at the end. */
  private static final Set<String> LOGIN_REFUSED =
      Set.of(
          "UnrecognizedClient",
          "InvalidClientTokenId",
          "ExpiredToken",
          "MissingAuthenticationToken",
          "IncompleteSignature",
          "InvalidSignature",
          "SignatureDoesNotMatch",
          "RequestExpired",
          "RequestTimeTooSkewed",
          "NotAuthorized",
          "OptInRequired");

  /** The SDK's message when a pod's or container's agent is configured and gave nothing. */
  private static final String NO_AGENT = "Failed to load credentials from metadata service";

  /**
   * What passes, in what the SDK says of each provider of a chain: of their errors only the texts
   * are left. Not what it says of an instance's service, which is the same on a host without one.
   */
  private static final Pattern NOT_NOW =
      Pattern.compile(
          NO_AGENT
              + "|Status Code: (?:429|5[0-9][0-9])|Throttling|Rate exceeded|Connection refused"
              + "|Connection reset|(?:connect|read) timed out|failed to respond",
          Pattern.CASE_INSENSITIVE);

  private static final Pattern NO_CREDENTIALS =
      Pattern.compile("Unable to load credentials|credentials provider|^" + NO_AGENT);

  private static final String SSO_SESSIONS =
      "/software/amazon/awssdk/services/ssooidc/SsoOidcClient.class";

  /** Answers: of whom (login, other, kms), the code without "Exception", and the message. */
  private static final ErrorTable ANSWERS =
      ErrorTable.of(
          """
          LoginFailed <- ^login clock\s
          {problem}: login refused{by} ({code}): the time of this host and that of AWS differ too \
          much
          Set this host's clock (NTP): AWS refuses requests that are more than 5 minutes off.

          LoginFailed <- ^login ExpiredToken
          {problem}: login refused{by} ({code})
          Get a new session token. Temporary credentials in variables do not renew themselves: a \
          role of the host or client.credentials-provider does.

          LoginFailed <- ^login\s
          {problem}: login refused{by} ({code})
          Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, AWS_PROFILE, or \
          the role, on the driver and on the executors.

          KmsUnavailable <- ^other \\S* busy\s
          {problem}: AWS's {service} answers {shortly}
          AWS's {service}, which gives the login, is not well: try later.

          LoginFailed <- ^other AccessDenied
          {said}: login refused by AWS's {service}
          Check the role (client.assume-role.arn, AWS_ROLE_ARN) and that this host may assume it, \
          or log in again (aws sso login).

          LoginFailed <- ^other\s
          {problem}: login refused by AWS's {service}, {shortly}
          Check the role (client.assume-role.arn, AWS_ROLE_ARN) and that this host may assume it, \
          or log in again (aws sso login).

          KeyDisabled <- ^kms Disabled\s
          {said}
          Enable the key: aws kms enable-key --key-id {key}

          KeyDisabled <- ^kms KMSInvalidState\s
          {said}
          Look at the key's state: aws kms describe-key. A key that is pending deletion comes back \
          with aws kms cancel-key-deletion and enable-key, until its date.

          AccessDenied <- ^kms AccessDenied\s
          {said}
          Allow this login kms:{permission} on the key, in an IAM policy and in the key's own \
          policy; AwsKms(...).driver_policy([...]) prints what it needs.

          BadWrappedKey <- ^kms (InvalidCiphertext |Validation .*ciphertextBlob)
          {said}
          The wrapped key was changed, another KMS wrapped it, or it was wrapped with {context}

          KeyNotFound <- ^kms (NotFound|InvalidArn|Validation .*keyId)
          {said}
          {where}

          BadWrappedKey <- ^kms IncorrectKey\s
          {said}
          Another key wrapped it: check that encryption.key-id, or the alias, still leads to the \
          key that the table was written with.

          NotSupported <- ^kms (InvalidKeyUsage|UnsupportedOperation)\s
          {said}
          Use a symmetric key for encryption (the default of create-key), or name the RSA key's \
          algorithm with kms.encryption-algorithm-spec.

          InvalidConfiguration <- ^kms Validation\s
          {said}
          Check the catalog's kms.* and encryption.kms.aws.* properties.

          KmsUnavailable <- ^kms \\S* busy\s
          {said}
          AWS KMS is overloaded or not well: the call is made again later.

          IcebergCrypto <-
          {said}
          See the error's code in AWS KMS's API reference.
          """);

  /** Failures without an answer of KMS's: the kind of failure, and the message. */
  private static final ErrorTable FAILURES =
      ErrorTable.of(
          """
          LoginFailed <- ^header\s
          {problem}: login refused, as a credential or a token for one cannot be a header's value
          Look for a line break in AWS_SESSION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN or its \
          file, or in what the credentials provider reads.

          InvalidConfiguration <- ^properties\s
          {problem}: {message}
          Check the properties client.*, http-client.* and kms.* of the catalog.

          LoginFailed <- ^signature\s
          {problem}: login refused, as the signature of a request for credentials is wrong
          Check the secrets of the profile, variables or role that credentials are asked for with, \
          and this host's clock.

          InvalidConfiguration <- Unable to load region
          {problem}: no region is set
          Set encryption.kms.aws.region, or AWS_REGION on the driver and the executors.

          InvalidConfiguration <- the '(\\w+)' service module must be on the class path
          {problem}: the profile needs a module of the AWS SDK that is not on the class path
          Add software.amazon.awssdk:{1}:{version} (the version in iceberg-aws-bundle) to \
          spark.jars.packages.

          LoginFailed <- ^\\S* no-ssooidc .*SSO session associated with this profile has expired
          {problem}: login refused, as the SSO session of the profile has ended, or the profile \
          has an sso_session, and the AWS SDK's module for those is not on the class path
          Log in again: aws sso login. A profile with an sso_session: Add \
          software.amazon.awssdk:ssooidc:{version} (the version in iceberg-aws-bundle) to \
          spark.jars.packages.

          LoginFailed <- SSO session associated with this profile has expired
          {problem}: login refused, as the SSO session of the profile has ended
          Log in again: aws sso login.

          KmsUnavailable <- ^no-login-now\s
          {problem}: what gives this host its login did not: {passing}
          STS, or the agent that AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI names, is \
          busy, restarts or cannot be reached: the call is made again. If it stays so, look at it, \
          and whether it refuses this pod.

          LoginFailed <- Unable to load credentials|credentials provider
          {problem}: there is no login, as no credentials were found
          Give this host a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and \
          AWS_SECRET_ACCESS_KEY in its environment, on the executors too.

          InvalidConfiguration <- ^untrusted\s
          {problem}: its TLS certificate is not trusted: {message}
          Check encryption.kms.aws.endpoint, and add a private authority to Java's trust store.

          KmsUnavailable <- ^unreadable\s
          {problem}: its answer was cut off, or is not one of AWS KMS
          Check encryption.kms.aws.endpoint and any proxy before it.

          KmsUnavailable <- ^network\s
          {problem}: it cannot be reached: {outage}
          Check the region, the endpoint (a VPC endpoint has a name of its own) and the network.

          IcebergCrypto <-
          {problem}: {message}
          Check the catalog's client.* and kms.* properties.
          """);

  /**
   * The error of ours for one of the SDK's.
   *
   * @param what "wrap" or "unwrap"
   */
  IcebergCryptoException typed(RuntimeException error, String what, String keyId) {
    String problem = String.format("%s could not %s with key '%s'", config, what, keyId);
    if (error instanceof AwsServiceException answer && answer.statusCode() == 407
        || Proxies.askForLogin(error)) {
      return Proxies.loginAsked(problem + ": it", config.address());
    }

    if (error instanceof AwsServiceException answer) {
      return answered(answer, problem, what, keyId);
    }

    if (error instanceof ApiCallTimeoutException
        || error instanceof ApiCallAttemptTimeoutException) {
      return config.timeLimit().exceeded(problem + ": no answer", error);
    }

    return error instanceof AbortedException && !Causes.any(error, AwsErrors::isOutage)
        ? TimeLimit.interrupted(problem, error)
        : notAnswered(error, problem);
  }

  /**
   * A refused login (by KMS, or by STS and SSO, which give credentials) may repeat the request's
   * headers, a session token among them: its message is not shown, and it is not the cause.
   */
  private IcebergCryptoException answered(
      AwsServiceException answer, String problem, String what, String keyId) {
    AwsErrorDetails details = answer.awsErrorDetails();
    String code = details == null || details.errorCode() == null ? "" : details.errorCode();
    String service = details == null ? null : details.serviceName();
    String kind = code.replaceFirst("Exception$", "");
    boolean byKms = service == null || service.equals("Kms");
    boolean busy = isTransient(answer, code);
    String said = problem + ": " + message(answer, code);
    String told = (byKms ? "kms " : "other ") + kind + (busy ? " busy " : " ") + said;
    if (LOGIN_REFUSED.contains(kind)) {
      told = "login " + (isClock(answer, kind) ? "clock " : kind + " ");
    }

    boolean shown = told.startsWith("kms ") || told.startsWith("other AccessDenied") && !busy;
    return ANSWERS.error(
        told,
        Map.ofEntries(
            Map.entry("problem", problem),
            Map.entry("said", said),
            Map.entry("code", code),
            Map.entry("shortly", shortly(answer, code)),
            Map.entry("by", byKms ? "" : " by AWS's " + service),
            Map.entry("service", String.valueOf(service)),
            Map.entry("key", keyId),
            Map.entry("permission", what.equals("wrap") ? "Encrypt" : "Decrypt"),
            Map.entry("where", whereToLook(keyId)),
            Map.entry("context", otherContext())),
        shown ? answer : null);
  }

  private static boolean isClock(AwsServiceException answer, String kind) {
    String message = answer.awsErrorDetails().errorMessage();
    return answer.isClockSkewException()
        || kind.equals("RequestExpired")
        || (message != null && message.startsWith("Signature "));
  }

  private static boolean isTransient(AwsServiceException answer, String code) {
    return answer.isThrottlingException()
        || answer.statusCode() >= 500
        || answer.statusCode() == 429
        || code.startsWith("KMSInternal")
        || code.startsWith("DependencyTimeout")
        || code.startsWith("KeyUnavailable")
        || code.startsWith("LimitExceeded")
        || code.startsWith("Throttling");
  }

  private static IcebergCryptoException notAnswered(RuntimeException failure, String problem) {
    String message = String.valueOf(failure.getMessage());
    Throwable outage = Causes.of(failure).filter(AwsErrors::isOutage).findFirst().orElse(null);
    Matcher passing = NOT_NOW.matcher(message);
    String kind = "";
    if (HeaderValues.areQuotedBy(failure)) {
      kind = "header";
    } else if (!(failure instanceof SdkClientException)) {
      kind = "properties";
    } else if (Causes.any(failure, AwsErrors::repeatsARequest)) {
      kind = "signature";
    } else if (NO_CREDENTIALS.matcher(message).find() && passing.find()) {
      kind = "no-login-now";
    } else if (Causes.isUntrusted(failure)) {
      kind = "untrusted";
    } else if (outage != null) {
      kind = isJackson(outage) ? "unreadable" : "network";
    }

    boolean mayQuote = Set.of("header", "signature", "no-login-now", "unreadable").contains(kind);
    // the SDK says the same of an SSO session that has ended and of a module that is missing
    boolean hasModule = SdkClientException.class.getResource(SSO_SESSIONS) != null;
    return FAILURES.error(
        kind + (hasModule ? " " : " no-ssooidc ") + message,
        Map.of(
            "problem",
            problem,
            "message",
            message,
            "outage",
            String.valueOf(outage),
            "passing",
            kind.equals("no-login-now") ? passing.group() : "",
            "version",
            VersionInfo.SDK_VERSION),
        mayQuote ? null : failure);
  }

  private static boolean isOutage(Throwable cause) {
    return cause instanceof IOException || isJackson(cause);
  }

  /** Of the SDK's parser, whose message may quote the answer. */
  private static boolean isJackson(Throwable cause) {
    return cause.getClass().getName().contains(".jackson.");
  }

  /** A chain of credentials providers quotes what STS answered to each. */
  private static boolean repeatsARequest(Throwable cause) {
    String message = String.valueOf(cause.getMessage()).toLowerCase(Locale.ROOT);
    return message.contains("canonical string") || message.contains("x-amz-security-token");
  }

  private static String shortly(AwsServiceException answer, String code) {
    return code.isEmpty() ? "HTTP " + answer.statusCode() : code;
  }

  private static String message(AwsServiceException answer, String code) {
    AwsErrorDetails details = answer.awsErrorDetails();
    String message = details == null ? null : details.errorMessage();
    return shortly(answer, code)
        + (message == null || message.isBlank() ? "" : ", " + message)
        + (answer.requestId() == null ? "" : " (request " + answer.requestId() + ")");
  }

  private String whereToLook(String keyId) {
    Matcher arn = KEY_ARN.matcher(keyId);
    if (arn.matches()) {
      String region = arn.group("region");
      if (config.region() != null && !config.region().equals(region)) {
        String hint =
            String.format(
                "The ARN is one of %s, and the client asks %s. ", region, config.region());
        return hint
            + (arn.group("name").startsWith("mrk-")
                ? "Use the key's ARN in "
                    + config.region()
                    + ", or its id, which is one in all regions."
                : String.format("Set %s=%s.", AwsConfig.REGION, region));
      }

      return "Check the ARN, and that the key was not deleted.";
    }

    if (keyId.startsWith("alias/") || KEY_ID.matcher(keyId).matches()) {
      return "Check the name, the region and the account: a key of another account needs its ARN.";
    }

    return String.format(
        "A key id is a key's id or ARN, alias/NAME or an alias's ARN; did you mean 'alias/%s'?",
        keyId);
  }

  /** The end of a hint: which encryption context it may have been. */
  private String otherContext() {
    return config.context().isEmpty()
        ? "an encryption context: set the same encryption.kms.aws.encryption-context.* as when the"
            + " table was created."
        : "another encryption context (or none) than "
            + config.context()
            + (config.bindsTable() ? ", such as for another table's UUID." : ".");
  }
}
