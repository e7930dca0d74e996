package io.icebergcrypto.kms.http;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.kms.call.Causes;

/**
 * Values of HTTP headers. Most are secrets, and HTTP clients quote a value that they refuse: so it
 * is checked here first, and an error of a login library that quotes one is not shown.
 */
public final class HeaderValues {
  private HeaderValues() {}

  /**
   * The value, which is visible ASCII with spaces within (RFC 9110, section 5.5, without what it
   * calls obsolete).
   *
   * @param kms how errors name the KMS
   * @param header the header's name
   * @throws InvalidConfigurationException when anything else is in it; the error does not show it
   */
  public static String require(String kms, String header, String value) {
    String problem = problem(value);
    if (problem != null) {
      throw new InvalidConfigurationException(
          String.format("%s: the value for the header %s %s", kms, header, problem),
          "Check where it comes from (a file, a variable, a credential provider): often a newline"
              + " was read with it.");
    }

    return value;
  }

  private static String problem(String value) {
    if (value == null || value.isEmpty()) {
      return "is empty";
    }

    for (int i = 0; i < value.length(); i++) {
      char each = value.charAt(i);
      if (each < ' ' || each > '~') {
        return String.format(
            "has a character that no header may have: number %d of %d is %s",
            i + 1,
            value.length(),
            each == '\n' || each == '\r' ? "a line break" : each > '~' ? "not ASCII" : "a control");
      }
    }

    return value.startsWith(" ") || value.endsWith(" ") ? "begins or ends with a space" : null;
  }

  /**
   * Whether an error is that of an HTTP client which refuses a header's value: java.net.http's and
   * HttpURLConnection's quote it, and so it must be neither told nor anyone's cause.
   */
  public static boolean areQuotedBy(Throwable failure) {
    return Causes.any(
        failure,
        cause -> {
          String message = String.valueOf(cause.getMessage());
          return message.contains("invalid header value")
              || message.contains("in message header value")
              || message.contains("a header value contains");
        });
  }

  /**
   * The error in place of one that {@linkplain #areQuotedBy quotes}: without it as a cause.
   *
   * @param kms how errors name the KMS
   */
  public static LoginFailedException refused(String kms) {
    return new LoginFailedException(
        kms + ": a credential is not a valid header value",
        "Look for a line break in the file, variable or credential provider that it comes from.");
  }
}
