package io.icebergcrypto.kms.pkcs11;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import java.util.Map;

/**
 * Which token, and where its PIN is.
 *
 * @param timeLimit of one call
 */
public record Pkcs11Config(Pkcs11Token.Place place, SecretSource pin, TimeLimit timeLimit)
    implements KmsConfig {
  static final String LIBRARY = "encryption.kms.pkcs11.library";
  static final String SLOT = "encryption.kms.pkcs11.slot";
  static final String TOKEN_LABEL = "encryption.kms.pkcs11.token-label";
  private static final String PIN_ENV = "encryption.kms.pkcs11.pin-env";
  private static final String PIN_FILE = "encryption.kms.pkcs11.pin-file";

  /**
   * Reads the catalog's properties; the token is first used by the first call.
   *
   * @throws InvalidConfigurationException when one is missing, wrong, or would hold a secret
   */
  public static Pkcs11Config of(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    reader.refuseSecret("encryption.kms.pkcs11.pin", PIN_ENV + " or " + PIN_FILE);
    String library = reader.required(LIBRARY, "/usr/lib/softhsm/libsofthsm2.so");
    Pkcs11Library.requireUsable(library, LIBRARY);
    String label = reader.optional(TOKEN_LABEL);
    Long slot = slot(reader.optional(SLOT));
    if ((label == null) == (slot == null)) {
      throw new InvalidConfigurationException(
          String.format(
              "%s of %s and %s are set", label == null ? "None" : "Both", TOKEN_LABEL, SLOT),
          "Set exactly one of the two, preferably the label, as slots may be renumbered.");
    }

    return new Pkcs11Config(
        new Pkcs11Token.Place(library, slot, label),
        SecretSource.required(reader, PIN_ENV, PIN_FILE),
        TimeLimit.of(reader));
  }

  @Override
  public MasterKeys open() {
    return new Pkcs11Keys(this);
  }

  @Override
  public String toString() {
    return place.toString();
  }

  private static Long slot(String value) {
    if (value == null) {
      return null;
    }

    try {
      long slot = Long.decode(value);
      if (slot >= 0 && slot <= Integer.MAX_VALUE) {
        return slot;
      }
    } catch (NumberFormatException e) {
      // told below, as a number out of range is
    }

    throw new InvalidConfigurationException(
        String.format("Property %s is not a slot's id: '%s'", SLOT, value),
        "Give the number that pkcs11-tool --list-slots shows in brackets, such as 0x1866d758 or"
            + " 409392984; or name the token by its label, with "
            + TOKEN_LABEL
            + ".");
  }
}
