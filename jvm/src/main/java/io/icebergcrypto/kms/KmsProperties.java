package io.icebergcrypto.kms;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Map;
import org.apache.iceberg.CatalogProperties;

/** The catalog properties that configure a KMS, and how they are read. */
public final class KmsProperties {
  /** Which KMS: keystore, vault, aws, gcp, azure or pkcs11. */
  public static final String KMS_TYPE = CatalogProperties.ENCRYPTION_KMS_TYPE;

  /** A class that implements Iceberg's KeyManagementClient, ours or the user's. */
  public static final String KMS_IMPL = CatalogProperties.ENCRYPTION_KMS_IMPL;

  /** How long an unwrapped key stays in memory, in milliseconds; 0 turns the cache off. */
  public static final String CACHE_TTL_MS = "encryption.kms.cache.ttl-ms";

  /** One hour. */
  public static final long CACHE_TTL_MS_DEFAULT = 3_600_000L;

  static final String KEYSTORE_PATH = "encryption.kms.keystore.path";
  static final String KEYSTORE_PASSWORD_ENV = "encryption.kms.keystore.password-env";
  static final String KEYSTORE_PASSWORD_FILE = "encryption.kms.keystore.password-file";

  private KmsProperties() {}

  /**
   * Reads how long unwrapped keys are kept.
   *
   * @param properties the catalog's properties
   * @return milliseconds, 0 or more
   * @throws InvalidConfigurationException when the value is not a number of milliseconds
   */
  static long cacheTtlMs(Map<String, String> properties) {
    String value = properties.get(CACHE_TTL_MS);
    if (value == null) {
      return CACHE_TTL_MS_DEFAULT;
    }

    try {
      long ttl = Long.parseLong(value.trim());
      if (ttl >= 0) {
        return ttl;
      }
    } catch (NumberFormatException e) {
      // told below, as a negative number is
    }

    throw new InvalidConfigurationException(
        String.format("Property %s is not a number of milliseconds: '%s'", CACHE_TTL_MS, value),
        "Give milliseconds, such as 3600000 for an hour, or 0 to turn the cache off.");
  }
}
