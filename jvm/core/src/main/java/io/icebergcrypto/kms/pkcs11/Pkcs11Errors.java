package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.pkcs11.Pkcs11Session.SessionEndedException;
import java.io.IOException;
import java.security.NoSuchAlgorithmException;
import java.util.Objects;
import java.util.Set;

/**
 * What SunPKCS11's errors mean. Their classes are not public; what counts is the name of the
 * token's answer (PKCS#11 2.40, section 5.1), the message of one of the causes.
 */
final class Pkcs11Errors {
  /** The token has refused this pin, and counted a wrong one. */
  private static final Set<String> WRONG_PIN =
      Set.of("CKR_PIN_INCORRECT", "CKR_PIN_INVALID", "CKR_PIN_LEN_RANGE");

  /** The session, the login or the device has gone; a new login may do. */
  private static final Set<String> ENDED =
      Set.of(
          "CKR_SESSION_HANDLE_INVALID",
          "CKR_SESSION_CLOSED",
          "CKR_USER_NOT_LOGGED_IN",
          "CKR_KEY_HANDLE_INVALID",
          "CKR_OBJECT_HANDLE_INVALID",
          "CKR_OPERATION_NOT_INITIALIZED",
          "CKR_DEVICE_REMOVED",
          "CKR_TOKEN_NOT_PRESENT",
          "CKR_DEVICE_ERROR",
          "CKR_CRYPTOKI_NOT_INITIALIZED",
          "CKR_GENERAL_ERROR",
          "CKR_FUNCTION_FAILED");

  /** Among these, what some tokens answer to bad data too. */
  private static final Set<String> ANYTHING =
      Set.of("CKR_DEVICE_ERROR", "CKR_GENERAL_ERROR", "CKR_FUNCTION_FAILED");

  /** The data are not what this key encrypted: no other meaning. */
  private static final Set<String> BAD_DATA =
      Set.of(
          "CKR_ENCRYPTED_DATA_INVALID", "CKR_ENCRYPTED_DATA_LEN_RANGE", "CKR_AEAD_DECRYPT_FAILED");

  private static final String REMOVED = "Token has been removed";

  private Pkcs11Errors() {}

  /** Whether the token has refused the pin as wrong. */
  static boolean isWrongPin(Throwable error) {
    return WRONG_PIN.contains(answer(error));
  }

  /** Whether a slot has no token, or one that has not been initialized. */
  static boolean isWithoutToken(Throwable error) {
    return answer(error).equals("CKR_TOKEN_NOT_RECOGNIZED")
        || answer(error).equals("CKR_TOKEN_NOT_PRESENT");
  }

  /** Whether a new session and login may fix it. */
  static boolean isEnded(Throwable error) {
    // a provider that was made while the token was not ready knows no mechanisms
    if (Causes.any(
        error, e -> e instanceof SessionEndedException || e instanceof NoSuchAlgorithmException)) {
      return true;
    }

    String answer = answer(error);
    return ENDED.contains(answer)
        || answer.startsWith("0x") // the vendor's own
        || says(error, REMOVED)
        || says(error, "no password provided"); // a look at the keys found itself logged out
  }

  /** Whether the token says so clearly that it can mean nothing else. */
  static boolean isSurelyEnded(Throwable error) {
    return isEnded(error) && !ANYTHING.contains(answer(error));
  }

  /** Whether the token says clearly that what it was to decrypt is bad. */
  static boolean isBadData(Throwable error) {
    return BAD_DATA.contains(answer(error));
  }

  /**
   * The typed error.
   *
   * @param token for the text, such as "PKCS#11 token 'x' of /lib/y.so"
   * @param doing what was to be done, such as "wrap with key 'k'"
   */
  static IcebergCryptoException typed(Throwable error, String token, String doing) {
    if (error instanceof IcebergCryptoException already) {
      return already;
    }

    String task = String.format("%s could not %s", token, doing);
    String problem = (task + ": " + Causes.innermostMessage(error)).strip();
    String refused = task + ": login refused, ";
    String code = answer(error).split(" ", 2)[0]; // newer Javas may add to it
    return switch (error instanceof NoSuchAlgorithmException ? "CKR_MECHANISM_INVALID" : code) {
      case "CKR_PIN_INCORRECT", "CKR_PIN_INVALID", "CKR_PIN_LEN_RANGE" ->
          new LoginFailedException(
              refused + "the pin is wrong (" + code + ")",
              "Check the pin. It is not tried again by this process: a token locks itself after a"
                  + " few wrong ones.",
              error);
      case "CKR_PIN_EXPIRED" ->
          new LoginFailedException(
              refused + "the pin has expired",
              "Set a new pin: pkcs11-tool --login --change-pin.",
              error);
      case "CKR_PIN_LOCKED" ->
          new LoginFailedException(
              refused + "the token has locked the pin",
              "The token's security officer unlocks it: pkcs11-tool --login-type so --init-pin.",
              error);
      case "CKR_USER_PIN_NOT_INITIALIZED" ->
          new LoginFailedException(
              refused + "the token's user has no pin yet",
              "The token's security officer sets it: pkcs11-tool --login-type so --init-pin.",
              error);
      case "CKR_KEY_FUNCTION_NOT_PERMITTED" ->
          new KeyDisabledException(
              problem,
              "The key's attributes forbid it: CKA_ENCRYPT and CKA_DECRYPT must be true.",
              error);
      case "CKR_SLOT_ID_INVALID" ->
          new InvalidConfigurationException(
              problem,
              "The library has no such slot; pkcs11-tool --list-slots shows the slots that exist. A"
                  + " token is better named by its label: encryption.kms.pkcs11.token-label.",
              error);
      case "CKR_TOKEN_NOT_RECOGNIZED" ->
          new InvalidConfigurationException(
              problem,
              "The token in this slot has not been initialized: choose another slot, or initialize"
                  + " it.",
              error);
      case "CKR_MECHANISM_INVALID", "CKR_MECHANISM_PARAM_INVALID", "CKR_ARGUMENTS_BAD" ->
          new NotSupportedException(
              problem,
              "The token must support AES-GCM (CKM_AES_GCM) with a nonce that the caller gives;"
                  + " pkcs11-tool --list-mechanisms shows what it supports.",
              error);
      default -> otherwise(error, code, problem);
    };
  }

  /** For what only Java's messages tell apart, and for the token's other answers. */
  private static IcebergCryptoException otherwise(Throwable error, String code, String problem) {
    if (says(error, "sharing same CKA_LABEL")) {
      return new InvalidConfigurationException(
          problem,
          "Two secret keys of the token have the same label, and Java then reads none: give one of"
              + " them another label.",
          error);
    }

    if (code.isEmpty() && causedByLibrary(error) || says(error, " does not exist")) {
      return new InvalidConfigurationException(
          problem,
          "Set encryption.kms.pkcs11.library to the HSM's PKCS#11 library, for this machine's"
              + " architecture; executors need it too.",
          error);
    }

    return code.startsWith("CKR_")
            || code.startsWith("0x")
            || says(error, REMOVED)
            || says(error, "PKCS11 not")
        ? new KmsUnavailableException(
            problem,
            "Check that the HSM is up and reachable; the log of its library says more. Libraries"
                + " that never reconnect need a new Spark process.",
            error)
        : new IcebergCryptoException(
            problem, "See the cause, and the log of the HSM's library.", error);
  }

  /** The loader's own error, when the file is not a library, or not one of PKCS#11. */
  private static boolean causedByLibrary(Throwable error) {
    Throwable cause = error.getCause();
    return cause instanceof IOException && cause.getCause() == null;
  }

  /** The token's answer, as CKR_NAME or, if vendor-defined, 0x...; empty if it has none. */
  private static String answer(Throwable error) {
    return Causes.of(error)
        .filter(cause -> cause.getClass().getName().endsWith(".PKCS11Exception"))
        .map(Throwable::getMessage)
        .filter(Objects::nonNull)
        .findFirst()
        .orElse("");
  }

  private static boolean says(Throwable error, String text) {
    return Causes.any(error, e -> e.getMessage() != null && e.getMessage().contains(text));
  }
}
