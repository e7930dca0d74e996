package io.icebergcrypto.kms.azure;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.HttpsAddress;
import java.net.URI;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A key of a vault, from {@code encryption.key-id}: {@code NAME}, {@code NAME/VERSION}, or the
 * key's whole identifier ({@code https://VAULT/keys/NAME} with or without a version).
 *
 * @param given as the user wrote it, for errors
 * @param name the key's name in the vault
 * @param version empty: not one version; the current one wraps
 */
record AzureKeyId(String given, String name, String version) {
  /** What Azure allows in names; versions have 32 hexadecimal digits. */
  private static final Pattern KEY =
      Pattern.compile("(?<name>[0-9a-zA-Z-]{1,127})(?:/(?<version>[0-9a-zA-Z]{1,64}))?/?");

  private static final Pattern KEY_PATH = Pattern.compile("/keys/" + KEY.pattern());

  /**
   * Reads a key id.
   *
   * @throws InvalidConfigurationException when it cannot be a key's, or is in another vault
   */
  static AzureKeyId of(String keyId, AzureConfig config) {
    if (!keyId.contains("://")) {
      Matcher key = KEY.matcher(keyId);
      if (key.matches()) {
        return of(keyId, key);
      }

      throw malformed(keyId, config);
    }

    URI uri =
        Optional.of(keyId)
            .filter(url -> HttpsAddress.problem(url) == null)
            .map(URI::create)
            .filter(HttpsAddress::isHttps)
            .orElseThrow(() -> malformed(keyId, config));
    Matcher key = KEY_PATH.matcher(uri.getPath());
    if (!key.matches()) {
      throw malformed(keyId, config);
    }

    if (!AzureConfig.origin(uri).equals(config.vault())) {
      throw new InvalidConfigurationException(
          String.format("Key '%s' is in another vault than this catalog's, %s", keyId, config),
          "Set "
              + AzureConfig.VAULT_URL
              + " to the vault of the key, or name a key of this vault.");
    }

    return of(keyId, key);
  }

  /** The same key in one version. */
  AzureKeyId at(String otherVersion) {
    return new AzureKeyId(given, name, otherVersion);
  }

  boolean isPinned() {
    return !version.isEmpty();
  }

  private static AzureKeyId of(String keyId, Matcher key) {
    String version = key.group("version");
    return new AzureKeyId(keyId, key.group("name"), version == null ? "" : version);
  }

  private static InvalidConfigurationException malformed(String keyId, AzureConfig config) {
    return new InvalidConfigurationException(
        String.format("'%s' cannot be the id of a key in %s", keyId, config),
        "Give encryption.key-id the key's name (letters, digits and hyphens), NAME/VERSION, or the"
            + " key identifier that Azure shows: "
            + config.vault()
            + "/keys/NAME.");
  }
}
