package io.icebergcrypto.kms.aws;

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
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.Proxies;
import java.io.IOException;
import java.util.Locale;
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
 * @param region the one that is asked; null when that is not known
 * @see <a href="https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html">Decrypt</a>
 * @see <a href="https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html">Common
 *     errors</a>
 */
record AwsErrors(AwsConfig config, String region) {
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

  /** How the codes of what passes start. */
  private static final Set<String> TRANSIENT =
      Set.of("KMSInternal", "DependencyTimeout", "KeyUnavailable", "LimitExceeded", "Throttling");

  /** What AWS says of a user who lacks a permission on a key. */
  private static final Pattern NOT_AUTHORIZED =
      Pattern.compile("is not authorized to perform: kms:|you are not allowed to access");

  /** The same where it is the policy of this network's endpoint that denies it. */
  private static final String OF_NETWORK = "VPC endpoint policy";

  /** In what AWS says of a key that it does not find in the region that is asked. */
  private static final Pattern NOT_HERE =
      Pattern.compile("does not exist in this region", Pattern.CASE_INSENSITIVE);

  /** In the ids of keys that other regions may have, too; the messages name them by ARN. */
  private static final String MULTI_REGION = "mrk-";

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

  private static final Pattern TOO_OFTEN =
      Pattern.compile("429|Throttling|Rate exceeded", Pattern.CASE_INSENSITIVE);

  private static final Pattern NO_CREDENTIALS =
      Pattern.compile("Unable to load credentials|credentials provider|^" + NO_AGENT);

  private static final Pattern NO_MODULE =
      Pattern.compile("the '(\\w+)' service module must be on the class path");

  private static final String SSO_ENDED = "SSO session associated with this profile has expired";
  private static final String SSO_SESSIONS =
      "/software/amazon/awssdk/services/ssooidc/SsoOidcClient.class";

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

  private IcebergCryptoException answered(
      AwsServiceException answer, String problem, String what, String keyId) {
    AwsErrorDetails details = answer.awsErrorDetails();
    String service = details == null ? null : details.serviceName();
    boolean byKms = service == null || service.equals("Kms");
    if (LOGIN_REFUSED.contains(kind(answer))) {
      return loginRefused(answer, problem, byKms ? "" : " by AWS's " + service);
    }

    return byKms ? byKms(answer, problem, what, keyId) : byOther(answer, problem, service);
  }

  /**
   * A refused login (by KMS, or by STS and SSO, which give credentials) may repeat the request's
   * headers, a session token among them: its message is not shown, and it is not the cause.
   */
  private static LoginFailedException loginRefused(
      AwsServiceException answer, String problem, String by) {
    String refused = String.format("%s: login refused%s (%s)", problem, by, code(answer));
    if (isClock(answer)) {
      return new LoginFailedException(
          refused + ": the clocks of this host and of AWS differ too much",
          "Set this host's clock (NTP): AWS refuses requests that are more than 5 minutes off.");
    }

    return new LoginFailedException(
        refused,
        kind(answer).equals("ExpiredToken")
            ? "Get a new session token. Temporary credentials in variables do not renew themselves:"
                + " a role of the host or client.credentials-provider does."
            : "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, AWS_PROFILE,"
                + " or the role, on the driver and on the executors.");
  }

  /** Of what STS and SSO say, too, only a missing permission is shown. */
  private static IcebergCryptoException byOther(
      AwsServiceException answer, String problem, String service) {
    if (isTransient(answer)) {
      return new KmsUnavailableException(
              String.format("%s: AWS's %s answers %s", problem, service, shortly(answer)),
              String.format(
                  "AWS's %s, which provides the login, is failing: try again later.", service))
          .throttledIf(answer.isThrottlingException());
    }

    boolean shown = kind(answer).startsWith("AccessDenied");
    return new LoginFailedException(
        shown
            ? String.format("%s: %s: login refused by AWS's %s", problem, message(answer), service)
            : String.format("%s: login refused by AWS's %s, %s", problem, service, shortly(answer)),
        "Check the role (client.assume-role.arn, AWS_ROLE_ARN) and that this host may assume it, or"
            + " log in again (aws sso login).",
        shown ? answer : null);
  }

  private IcebergCryptoException byKms(
      AwsServiceException answer, String problem, String what, String keyId) {
    String said = (problem + ": " + message(answer)).strip();
    String kind = kind(answer);
    boolean invalid = kind.equals("Validation"); // the message says what
    if (kind.equals("InvalidCiphertext") || invalid && said.contains("ciphertextBlob")) {
      return new BadWrappedKeyException(
          said,
          "The wrapped key was changed, another KMS wrapped it, or it was wrapped with "
              + otherContext(),
          answer);
    }

    boolean noKey = kind.startsWith("NotFound") || kind.startsWith("InvalidArn");
    if (noKey || invalid && said.contains("keyId")) {
      String otherRegion = otherRegion(keyId);
      return otherRegion == null
          ? new KeyNotFoundException(said, whereToLook(keyId), answer)
              .ofKeyIf(isAnswer(said, keyId))
          : new InvalidConfigurationException(said, otherRegion, answer);
    }

    return switch (kind) {
      case "Disabled" ->
          new KeyDisabledException(
              said, "Enable the key: aws kms enable-key --key-id " + keyId, answer);
      case "KMSInvalidState" ->
          said.contains("pending ") // deletion, or the import of its bytes
              ? new KeyDisabledException(
                      said,
                      "Look at the key's state: aws kms describe-key. A key that is pending"
                          + " deletion comes back with aws kms cancel-key-deletion and enable-key,"
                          + " until its date.",
                      answer)
                  .destroyedIf(said.contains("pending deletion") && isAnswer(said, keyId))
              : new IcebergCryptoException( // what every failure of a custom key store is, too
                  said,
                  "Look at the key's state: aws kms describe-key. If it is in a custom key store,"
                      + " look whether that is connected: aws kms describe-custom-key-stores.",
                  answer);
      case "AccessDenied" ->
          new AccessDeniedException(
                  said,
                  String.format(
                      "Allow this login kms:%s on the key, in an IAM policy and in the key's own"
                          + " policy; AwsKms(...).driver_policy([...]) prints what it needs.",
                      what.equals("wrap") ? "Encrypt" : "Decrypt"),
                  answer)
              .ofKeyIf(
                  NOT_AUTHORIZED.matcher(said).find()
                      && !said.contains(OF_NETWORK)
                      && (!NOT_HERE.matcher(said).find() || isAnswer(said, keyId)));
      case "IncorrectKey" ->
          new BadWrappedKeyException(
              said,
              "Another key wrapped it: check that encryption.key-id, or the alias, still leads to"
                  + " the key that the table was written with.",
              answer);
      case "InvalidKeyUsage", "UnsupportedOperation" ->
          new NotSupportedException(
              said,
              "Use a symmetric key for encryption (the default of create-key), or name the RSA"
                  + " key's algorithm with kms.encryption-algorithm-spec.",
              answer);
      case "Validation" ->
          new InvalidConfigurationException(
              said, "Check the catalog's kms.* and encryption.kms.aws.* properties.", answer);
      default ->
          isTransient(answer)
              ? new KmsUnavailableException(
                      said,
                      answer.isThrottlingException()
                          ? "The account's quota of requests in this region is used up: ask for a"
                              + " larger one, or keep keys in memory longer with"
                              + " encryption.kms.cache.ttl-ms."
                          : "AWS KMS is overloaded or failing, and all attempts failed: try again"
                              + " later.",
                      answer)
                  .throttledIf(answer.isThrottlingException())
              : new IcebergCryptoException(
                  said, "See the error's code in AWS KMS's API reference.", answer);
    };
  }

  private static boolean isClock(AwsServiceException answer) {
    String message = answer.awsErrorDetails().errorMessage();
    return answer.isClockSkewException()
        || kind(answer).equals("RequestExpired")
        || (message != null && message.startsWith("Signature "));
  }

  private static boolean isTransient(AwsServiceException answer) {
    return answer.isThrottlingException() // or 429
        || answer.statusCode() >= 500
        || TRANSIENT.stream().anyMatch(code(answer)::startsWith);
  }

  /** Where a message may quote a secret, the failure is not the cause. */
  private static IcebergCryptoException notAnswered(RuntimeException failure, String problem) {
    String message = String.valueOf(failure.getMessage());
    if (HeaderValues.areQuotedBy(failure)) {
      return new LoginFailedException(
          problem
              + ": login refused, as a credential, or a token for one, is not a valid header value",
          "Look for a line break in AWS_SESSION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN or its"
              + " file, or in what the credentials provider reads.");
    }

    if (!(failure instanceof SdkClientException)) {
      return new InvalidConfigurationException(
          (problem + ": " + message).strip(),
          "Check the properties client.*, http-client.* and kms.* of the catalog.",
          failure);
    }

    if (Causes.any(failure, AwsErrors::repeatsARequest)) {
      return new LoginFailedException(
          problem + ": login refused, as the signature of a request for credentials is wrong",
          "Check the secrets of the profile, variables or role that credentials are asked for with,"
              + " and this host's clock.");
    }

    return notSent(failure, problem, message);
  }

  private static IcebergCryptoException notSent(
      RuntimeException failure, String problem, String message) {
    boolean noCredentials = NO_CREDENTIALS.matcher(message).find();
    Matcher passing = NOT_NOW.matcher(message);
    boolean notNow = noCredentials && passing.find();
    Throwable cause = notNow || isUnreadable(failure) ? null : failure;
    Matcher module = NO_MODULE.matcher(message);
    if (message.contains("Unable to load region")) {
      return new InvalidConfigurationException(
          problem + ": no region is set",
          "Set encryption.kms.aws.region, or AWS_REGION on the driver and the executors.",
          cause);
    }

    if (module.find()) {
      return new InvalidConfigurationException(
          problem + ": the profile needs a module of the AWS SDK that is not on the class path",
          toAdd(module.group(1)),
          cause);
    }

    if (message.contains(SSO_ENDED)) {
      return sessionEnded(
          problem + ": login refused, as the SSO session of the profile has ended", cause);
    }

    if (notNow) {
      return new KmsUnavailableException(
              problem + ": the service that gives this host its login failed: " + passing.group(),
              "STS, or the agent that AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI names, is"
                  + " busy, restarting or unreachable, and all attempts failed: try again later. If"
                  + " this persists, check it, and whether it refuses this pod.")
          .throttledIf(TOO_OFTEN.matcher(passing.group()).find());
    }

    return noCredentials
        ? new LoginFailedException(
            problem + ": there is no login, as no credentials were found",
            "Give this host a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and"
                + " AWS_SECRET_ACCESS_KEY in its environment, on the executors too.",
            cause)
        : notReached(failure, problem, message);
  }

  /** The SDK says the same of a session that has ended and of a module that is missing. */
  private static LoginFailedException sessionEnded(String problem, Throwable cause) {
    boolean hasModule = SdkClientException.class.getResource(SSO_SESSIONS) != null;
    return new LoginFailedException(
        problem
            + (hasModule
                ? ""
                : ", or the profile has an sso_session, and the AWS SDK's module for those is not"
                    + " on the class path"),
        "Log in again: aws sso login."
            + (hasModule ? "" : " A profile with an sso_session: " + toAdd("ssooidc")),
        cause);
  }

  private static String toAdd(String module) {
    return String.format(
        "Add software.amazon.awssdk:%s:%s (the version in iceberg-aws-bundle) to"
            + " spark.jars.packages.",
        module, VersionInfo.SDK_VERSION);
  }

  private static IcebergCryptoException notReached(
      RuntimeException failure, String problem, String message) {
    if (Causes.isUntrusted(failure)) {
      return new InvalidConfigurationException(
          (problem + ": its TLS certificate is not trusted: " + message).strip(),
          "Check encryption.kms.aws.endpoint, and add a private authority to Java's trust store.",
          failure);
    }

    if (isUnreadable(failure)) {
      return new KmsUnavailableException(
          problem + ": its answer was cut off, or did not come from AWS KMS",
          "Check encryption.kms.aws.endpoint and any proxy before it.");
    }

    Throwable outage = outage(failure);
    return outage == null
        ? new IcebergCryptoException(
            (problem + ": " + message).strip(),
            "Check the catalog's client.* and kms.* properties.",
            failure)
        : new KmsUnavailableException(
            (problem + ": it cannot be reached: " + outage).strip(),
            "Check the region, the endpoint (a VPC endpoint has a name of its own) and the"
                + " network.",
            failure);
  }

  private static Throwable outage(Throwable failure) {
    return Causes.of(failure).filter(AwsErrors::isOutage).findFirst().orElse(null);
  }

  private static boolean isUnreadable(Throwable failure) {
    Throwable outage = outage(failure);
    return outage != null && isJackson(outage) && !Causes.isUntrusted(failure);
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

  private static String code(AwsServiceException answer) {
    AwsErrorDetails details = answer.awsErrorDetails();
    return details == null || details.errorCode() == null ? "" : details.errorCode();
  }

  private static String kind(AwsServiceException answer) {
    return code(answer).replaceFirst("Exception$", "");
  }

  private static String shortly(AwsServiceException answer) {
    String code = code(answer);
    return code.isEmpty() ? "HTTP " + answer.statusCode() : code;
  }

  private static String message(AwsServiceException answer) {
    AwsErrorDetails details = answer.awsErrorDetails();
    String message = details == null ? null : details.errorMessage();
    return shortly(answer)
        + (message == null || message.isBlank() ? "" : ", " + message)
        + (answer.requestId() == null ? "" : " (request " + answer.requestId() + ")");
  }

  /** What to do when the key's own region was not asked for it; null: it was. */
  private String otherRegion(String keyId) {
    Matcher arn = KEY_ARN.matcher(keyId);
    if (!arn.matches() || region == null || region.equals(arn.group("region"))) {
      return null;
    }

    String own = arn.group("region");
    return String.format("The ARN is one of %s, and the client asks %s. ", own, region)
        + (arn.group("name").startsWith(MULTI_REGION)
            ? "Use the key's ARN in " + region + ", or its id, which is one in all regions."
            : String.format("Set %s=%s.", AwsConfig.REGION, own));
  }

  /**
   * Whether what a region says of a key holds for every host: all ask the same region, not what
   * their environments name, and no other one can have the key.
   */
  private boolean isAnswer(String said, String keyId) {
    boolean sameForAll =
        config.region() != null || region != null && KEY_ARN.matcher(keyId).matches();
    return sameForAll && otherRegion(keyId) == null && !said.contains(MULTI_REGION);
  }

  private static String whereToLook(String keyId) {
    if (KEY_ARN.matcher(keyId).matches()) {
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
