package io.icebergcrypto.config;

/**
 * What happens to new statistics files of encrypted tables. Encrypted ones are readable under every
 * policy.
 */
public enum StatisticsPolicy {
  /** None are written. */
  REFUSE,
  /** They are written in plaintext, and those without a key are read. */
  PLAINTEXT,
  /** They are written as AES GCM streams. */
  ENCRYPT
}
