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
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.http.HeaderValues;
import io.icebergcrypto.kms.http.JsonHttp;
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
 * Tells from what the AWS SDK throws what is wrong.
 *
 * @see <a href="https://docs.aws.amazon.com/kms/latest/APIReference/API_Decrypt.html">Decrypt</a>
 * @see <a href="https://docs.aws.amazon.com/kms/latest/APIReference/CommonErrors.html">Common
 *     errors</a>
 */
public record AwsKmsErrors(AwsKmsSettings settings) {
  private static final Pattern KEY_ARN =
      Pattern.compile("arn:[^:]+:kms:(?<region>[^:]+):[0-9]*:(?:key|alias)/(?<name>.+)");

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

  /** What the SDK says of a profile that needs a part of it which is not there. */
  private static final Pattern MODULE =
      Pattern.compile("the '(?<name>\\w+)' service module must be on the class path");

  /** The SDK's words when a pod's or container's agent is configured and gave nothing. */
  private static final String NO_AGENT = "Failed to load credentials from metadata service";

  /**
   * What passes, in what the SDK tells of each provider of a chain: of their errors only the texts
   * are left. Not what it says of an instance's service, which is the same on a host that has none.
   */
  private static final Pattern NOT_NOW =
      Pattern.compile(
          NO_AGENT
              + "|Status Code: (?:429|5[0-9][0-9])|Throttling|Rate exceeded|Connection refused"
              + "|Connection reset|(?:connect|read) timed out|failed to respond",
          Pattern.CASE_INSENSITIVE);

  private static final String SSO_SESSIONS =
      "/software/amazon/awssdk/services/ssooidc/SsoOidcClient.class";
  private static final Pattern KEY_ID = Pattern.compile("(?:mrk-)?[0-9a-f-]{32,36}");

  /**
   * The error of ours for one of the SDK's.
   *
   * @param what "wrap" or "unwrap"
   */
  public IcebergCryptoException typed(RuntimeException error, String what, String keyId) {
    String problem = String.format("%s could not %s with key '%s'", settings.kms(), what, keyId);
    if (error instanceof AwsServiceException answer) {
      return answered(answer, problem, what, keyId);
    }

    if (HeaderValues.areQuotedBy(error)) {
      return new LoginFailedException(
          problem
              + ": login refused, as a credential or a token for one cannot be a header's value",
          "Look for a line break in AWS_SESSION_TOKEN, AWS_CONTAINER_AUTHORIZATION_TOKEN or its"
              + " file, or in what the credentials provider reads.");
    }

    return error instanceof SdkClientException failure
        ? notAnswered(failure, problem)
        : new InvalidConfigurationException(
            problem + ": " + error.getMessage(),
            "Check the properties client.*, http-client.* and kms.* of the catalog.",
            error);
  }

  private IcebergCryptoException answered(
      AwsServiceException answer, String problem, String what, String keyId) {
    AwsErrorDetails details = answer.awsErrorDetails();
    String code = details == null || details.errorCode() == null ? "" : details.errorCode();
    String service = details == null ? null : details.serviceName();
    String kind = code.replaceFirst("Exception$", "");
    boolean byKms = service == null || service.equals("Kms");
    if (LOGIN_REFUSED.contains(kind)) {
      return loginRefused(answer, code, problem, byKms ? "" : " by AWS's " + service);
    }

    String said = problem + ": " + words(answer, code);
    if (!byKms) {
      return notLoggedIn(answer, code, problem, said);
    }

    switch (kind) {
      case "NotFound", "InvalidArn":
        return new KeyNotFoundException(said, whereToLook(keyId), answer);
      case "Disabled":
        return new KeyDisabledException(
            said, "Enable the key: aws kms enable-key --key-id " + keyId, answer);
      case "KMSInvalidState":
        return new KeyDisabledException(
            said,
            "Look at the key's state: aws kms describe-key. A key that is pending deletion comes"
                + " back with aws kms cancel-key-deletion and enable-key, until its date.",
            answer);
      case "AccessDenied":
        return new AccessDeniedException(
            said,
            String.format(
                "Allow this login kms:%s on the key, in an IAM policy and in the key's own policy;"
                    + " AwsKms(...).driver_policy([...]) prints what it needs.",
                what.equals("wrap") ? "Encrypt" : "Decrypt"),
            answer);
      case "InvalidCiphertext":
        return new BadWrappedKeyException(said, notThatBlob(), answer);
      case "IncorrectKey":
        return new BadWrappedKeyException(
            said,
            "Another key wrapped it: check that encryption.key-id, or the alias, still leads to the"
                + " key that the table was written with.",
            answer);
      case "InvalidKeyUsage", "UnsupportedOperation":
        return new NotSupportedException(
            said,
            "Use a symmetric key for encryption (the default of create-key), or name the RSA key's"
                + " algorithm with "
                + AwsKmsSettings.ALGORITHM
                + ".",
            answer);
      case "Validation":
        return notValid(answer, said, what, keyId);
      default:
        return isTransient(answer, code)
            ? new KmsUnavailableException(
                said, "AWS KMS is overloaded or not well: the call is made again later.", answer)
            : new IcebergCryptoException(
                said, "See the error's code in AWS KMS's API reference.", answer);
    }
  }

  /**
   * Another service than KMS answered: STS or SSO, which credentials come from. What it says of a
   * permission is told; of other refusals only the code is, as they may repeat what they were sent.
   */
  private static IcebergCryptoException notLoggedIn(
      AwsServiceException answer, String code, String problem, String said) {
    String service = answer.awsErrorDetails().serviceName();
    if (isTransient(answer, code)) {
      return new KmsUnavailableException(
          String.format("%s: AWS's %s answers %s", problem, service, shortly(answer, code)),
          "AWS's " + service + ", which gives the login, is not well: try later.");
    }

    String refused = ": login refused by AWS's " + service;
    String hint =
        "Check the role (client.assume-role.arn, AWS_ROLE_ARN) and that this host may assume it, or"
            + " log in again (aws sso login).";
    return code.startsWith("AccessDenied")
        ? new LoginFailedException(said + refused, hint, answer)
        : new LoginFailedException(problem + refused + ", " + shortly(answer, code), hint);
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

  /** What KMS finds wrong before it looks at keys: the id's form, or the blob's size. */
  private IcebergCryptoException notValid(
      AwsServiceException answer, String said, String what, String keyId) {
    if (said.contains("ciphertextBlob")) {
      return new BadWrappedKeyException(said, notThatBlob(), answer);
    }

    return said.contains("keyId")
        ? new KeyNotFoundException(said, whereToLook(keyId), answer)
        : new InvalidConfigurationException(
            said, "Check the catalog's kms.* and encryption.kms.aws.* properties.", answer);
  }

  /**
   * The answer to a bad signature repeats the request's headers, a session token among them:
   * nothing of such an answer is told, and it is no cause.
   */
  private static IcebergCryptoException loginRefused(
      AwsServiceException answer, String code, String problem, String by) {
    String said = String.format("%s: login refused%s (%s)", problem, by, code);
    String message = answer.awsErrorDetails().errorMessage();
    if (answer.isClockSkewException()
        || code.startsWith("RequestExpired")
        || (message != null && message.startsWith("Signature "))) {
      return new LoginFailedException(
          said + ": the time of this host and that of AWS differ too much",
          "Set this host's clock (NTP): AWS refuses requests that are more than 5 minutes off.");
    }

    return new LoginFailedException(
        said,
        code.startsWith("ExpiredToken")
            ? "Get a new session token. Temporary credentials in variables do not renew themselves:"
                + " a role of the host or client.credentials-provider does."
            : "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, AWS_PROFILE,"
                + " or the role, on the driver and on the executors.");
  }

  private IcebergCryptoException notAnswered(SdkClientException failure, String problem) {
    String message = String.valueOf(failure.getMessage());
    if (repeatsARequest(failure)) {
      return new LoginFailedException(
          problem + ": login refused, as the signature of a request for credentials is wrong",
          "Check the secrets of the profile, variables or role that credentials are asked for with,"
              + " and this host's clock.");
    }

    if (failure instanceof ApiCallTimeoutException
        || failure instanceof ApiCallAttemptTimeoutException) {
      return new KmsUnavailableException(
          String.format("%s: no answer within %d ms", problem, settings.timeoutMs()),
          "Check the network and KMS's load; " + KmsProperties.CALL_TIMEOUT_MS + " sets the time.",
          failure);
    }

    if (message.contains("Unable to load region")) {
      return new InvalidConfigurationException(
          problem + ": no region is set",
          "Set " + AwsKmsSettings.REGION + ", or AWS_REGION on the driver and the executors.",
          failure);
    }

    Matcher module = MODULE.matcher(message);
    if (module.find()) {
      return new InvalidConfigurationException(
          problem + ": the profile needs a module of the AWS SDK that is not on the class path",
          add(module.group("name")),
          failure);
    }

    if (message.contains("SSO session associated with this profile has expired")) {
      return ssoSession(failure, problem);
    }

    boolean noCredentials =
        message.contains("Unable to load credentials") || message.contains("credentials provider");
    Matcher passing = NOT_NOW.matcher(message);
    if ((noCredentials || message.startsWith(NO_AGENT)) && passing.find()) {
      return new KmsUnavailableException( // without the cause, which may quote an answer
          String.format("%s: what gives this host its login did not: %s", problem, passing.group()),
          "STS, or the agent that AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI names, is"
              + " busy, restarts or cannot be reached: the call is made again. If it stays so,"
              + " look at it, and whether it refuses this pod.");
    }

    if (noCredentials) {
      return new LoginFailedException(
          problem + ": there is no login, as no credentials were found",
          "Give this host a role, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and"
              + " AWS_SECRET_ACCESS_KEY in its environment, on the executors too.",
          failure);
    }

    if (JsonHttp.isUntrusted(failure)) {
      return new InvalidConfigurationException(
          problem + ": its TLS certificate is not trusted: " + message,
          "Check "
              + AwsKmsSettings.ENDPOINT
              + ", and add a private authority to Java's trust store.",
          failure);
    }

    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause.getClass().getName().contains(".jackson.")) { // its message may quote the answer
        return new KmsUnavailableException(
            problem + ": its answer was cut off, or is not one of AWS KMS",
            "Check " + AwsKmsSettings.ENDPOINT + " and any proxy before it.");
      }

      if (cause instanceof IOException) {
        return new KmsUnavailableException(
            problem + ": it cannot be reached: " + cause,
            "Check the region, the endpoint (a VPC endpoint has a name of its own) and the"
                + " network.",
            failure);
      }
    }

    return failure instanceof AbortedException
        ? new KmsUnavailableException(
            problem + ": the call was interrupted",
            "The query was cancelled, or the call took too long: " + KmsProperties.CALL_TIMEOUT_MS,
            failure)
        : new IcebergCryptoException(
            problem + ": " + message,
            "Check the catalog's client.* and kms.* properties.",
            failure);
  }

  /** The SDK says the same of a session that has ended and of a module that is missing. */
  private static LoginFailedException ssoSession(SdkClientException failure, String problem) {
    boolean hasModule = SdkClientException.class.getResource(SSO_SESSIONS) != null;
    return new LoginFailedException(
        problem
            + ": login refused, as the SSO session of the profile has ended"
            + (hasModule
                ? ""
                : ", or the profile has an sso_session, and the AWS SDK's module for those is not"
                    + " on the class path"),
        "Log in again: aws sso login."
            + (hasModule ? "" : " A profile with an sso_session: " + add("ssooidc")),
        failure);
  }

  private static String add(String module) {
    return String.format(
        "Add software.amazon.awssdk:%s:%s (the version in iceberg-aws-bundle) to"
            + " spark.jars.packages.",
        module, VersionInfo.SDK_VERSION);
  }

  /** A chain of credentials providers quotes what STS answered to each. */
  private static boolean repeatsARequest(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      String said = String.valueOf(cause.getMessage()).toLowerCase(Locale.ROOT);
      if (said.contains("canonical string") || said.contains("x-amz-security-token")) {
        return true;
      }
    }

    return false;
  }

  private static String shortly(AwsServiceException answer, String code) {
    return code.isEmpty() ? "HTTP " + answer.statusCode() : code;
  }

  private static String words(AwsServiceException answer, String code) {
    StringBuilder words = new StringBuilder(shortly(answer, code));
    AwsErrorDetails details = answer.awsErrorDetails();
    if (details != null && details.errorMessage() != null && !details.errorMessage().isBlank()) {
      words.append(", ").append(details.errorMessage());
    }

    return answer.requestId() == null
        ? words.toString()
        : words.append(" (request ").append(answer.requestId()).append(')').toString();
  }

  private String whereToLook(String keyId) {
    Matcher arn = KEY_ARN.matcher(keyId);
    if (arn.matches()) {
      String region = arn.group("region");
      if (settings.region() != null && !settings.region().equals(region)) {
        String hint =
            String.format(
                "The ARN is one of %s, and the client asks %s. ", region, settings.region());
        return hint
            + (arn.group("name").startsWith("mrk-")
                ? "Use the key's ARN in "
                    + settings.region()
                    + ", or its id, which is one in all regions."
                : String.format("Set %s=%s.", AwsKmsSettings.REGION, region));
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

  private String notThatBlob() {
    return settings.context().isEmpty()
        ? "The wrapped key was changed, another KMS wrapped it, or it was wrapped with an"
            + " encryption context: set the same encryption.kms.aws.encryption-context.* as when"
            + " the table was created."
        : "The wrapped key was changed, another KMS wrapped it, or it was wrapped with another"
            + " encryption context (or none) than "
            + settings.context()
            + (settings.bindsTable() ? ", such as for another table's UUID." : ".");
  }
}
