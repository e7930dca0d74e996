package io.icebergcrypto.kms.gcp;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The resource name of a key in Google Cloud KMS, which is a table's key id there.
 *
 * <p>A version may follow. Cloud KMS encrypts under a version, but decrypts by the key's name
 * alone: the ciphertext says which version made it.
 *
 * @param key {@code projects/P/locations/L/keyRings/R/cryptoKeys/K}
 * @param asGiven the same, with {@code /cryptoKeyVersions/N} if that was given
 */
record GcpKeyName(String key, String asGiven) {
  private static final Pattern SHAPE =
      Pattern.compile(
          "(projects/[A-Za-z0-9.:_-]+/locations/[A-Za-z0-9-]+/keyRings/[A-Za-z0-9_-]{1,63}"
              + "/cryptoKeys/[A-Za-z0-9_-]{1,63})(/cryptoKeyVersions/[1-9][0-9]*)?");

  /**
   * Reads a key id.
   *
   * @throws InvalidConfigurationException when it is no such name
   */
  static GcpKeyName parse(String keyId) {
    Matcher matcher = SHAPE.matcher(keyId);
    if (!matcher.matches()) {
      throw new InvalidConfigurationException(
          String.format("'%s' is not the name of a key in Google Cloud KMS", keyId),
          "Give the key's full name: projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/"
              + "KEY, as `gcloud kms keys list` prints it.");
    }

    return new GcpKeyName(matcher.group(1), keyId);
  }
}
