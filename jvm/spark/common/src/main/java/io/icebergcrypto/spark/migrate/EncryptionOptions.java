package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.InvalidConfigurationException;

/**
 * What a call of encrypt_table does.
 *
 * @param keyId the id of a master key in the KMS
 * @param maxBytes how much it copies at most, but for the last file of each group; what is left is
 *     for the next calls, and the table is encrypted by the last one
 * @param throttle how many bytes a second it reads of the table at most, on average; each is read
 *     and written a few times
 * @param dryRun true: it only says what there is to do
 */
public record EncryptionOptions(String keyId, long maxBytes, long throttle, boolean dryRun) {
  /**
   * Checks them.
   *
   * @throws InvalidConfigurationException when a number is not above zero
   */
  public EncryptionOptions {
    if (maxBytes <= 0) {
      throw new InvalidConfigurationException(
          "max_bytes is " + maxBytes, "Give how many bytes this call copies: more than 0.");
    }

    if (throttle <= 0) {
      throw new InvalidConfigurationException(
          "throttle is " + throttle,
          "Give how many bytes a second this call copies at most: more than 0.");
    }
  }
}
