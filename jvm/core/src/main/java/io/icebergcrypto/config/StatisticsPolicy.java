package io.icebergcrypto.config;

/**
 * What becomes of new statistics files of encrypted tables. One that was written encrypted can be
 * read under each of these.
 */
public enum StatisticsPolicy {
  /** None are written. */
  REFUSE,
  /** They are written in plaintext, and those without a key are read. */
  PLAINTEXT,
  /** They are written as AES GCM streams. */
  ENCRYPT
}
