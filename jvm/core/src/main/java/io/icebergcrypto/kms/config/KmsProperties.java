package io.icebergcrypto.kms.config;

import org.apache.iceberg.CatalogProperties;

/** The catalog properties that configure a KMS, and how they are read. */
public final class KmsProperties {
  /**
   * What stands before the same names in a Hadoop configuration, where no catalog gives them:
   * {@code iceberg-crypto.encryption.kms-type}. Spark puts there what its settings name {@code
   * spark.hadoop.iceberg-crypto.encryption.kms-type}, and sends it to executors.
   */
  public static final String HADOOP_PREFIX = "iceberg-crypto.";

  /** What the names of all others start with. */
  public static final String PREFIX = "encryption.kms.";

  /** Which KMS: keystore, vault, aws, gcp, azure, pkcs11 or hadoop. */
  public static final String KMS_TYPE = CatalogProperties.ENCRYPTION_KMS_TYPE;

  /** A class that implements Iceberg's KeyManagementClient, ours or the user's. */
  public static final String KMS_IMPL = CatalogProperties.ENCRYPTION_KMS_IMPL;

  /**
   * Whether only who may use a master key can wrap with it, said by the user for a client that does
   * not say so itself.
   */
  public static final String AUTHENTICATED_WRAPPING = "encryption.kms.authenticated-wrapping";

  /** What requests to the KMS say of the application; Spark's own id by default. */
  public static final String APPLICATION_ID = "encryption.kms.application-id";

  /** How long an unwrapped key stays in memory, in milliseconds; 0 turns the cache off. */
  public static final String CACHE_TTL_MS = "encryption.kms.cache.ttl-ms";

  /** One hour. */
  public static final long CACHE_TTL_MS_DEFAULT = 3_600_000L;

  /** How often a call that found the KMS unavailable is made, the first time included. */
  public static final String RETRY_MAX_ATTEMPTS = "encryption.kms.retry.max-attempts";

  /**
   * How long to wait before the second attempt, in milliseconds; doubles from attempt to attempt.
   */
  public static final String RETRY_INITIAL_DELAY_MS = "encryption.kms.retry.initial-delay-ms";

  /** The longest wait between two attempts, in milliseconds. */
  public static final String RETRY_MAX_DELAY_MS = "encryption.kms.retry.max-delay-ms";

  /** How long all attempts of one call may take together, in milliseconds. */
  public static final String RETRY_TIMEOUT_MS = "encryption.kms.retry.timeout-ms";

  /** How long one attempt may take, in milliseconds. */
  public static final String CALL_TIMEOUT_MS = "encryption.kms.call-timeout-ms";

  /** Ten seconds. */
  public static final long CALL_TIMEOUT_MS_DEFAULT = 10_000L;

  /**
   * After how many failed calls in a row (each with all its attempts) for one master key that key
   * is left alone for a while; and after how many that found no connection, the KMS. 0: never.
   */
  public static final String BREAKER_FAILURES = "encryption.kms.circuit-breaker.failures";

  /** For how long it is then left alone, in milliseconds. */
  public static final String BREAKER_DELAY_MS = "encryption.kms.circuit-breaker.delay-ms";

  public static final String KEYSTORE_PATH = "encryption.kms.keystore.path";
  public static final String KEYSTORE_PASSWORD_ENV = "encryption.kms.keystore.password-env";
  public static final String KEYSTORE_PASSWORD_FILE = "encryption.kms.keystore.password-file";

  private KmsProperties() {}
}
