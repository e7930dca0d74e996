package io.icebergcrypto.kms.config;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.iceberg.CatalogProperties;

/** The catalog properties that configure a KMS. */
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
   * Whether only those who may use a master key can wrap with it, said by the user for a client
   * that does not say so itself.
   */
  public static final String AUTHENTICATED_WRAPPING = "encryption.kms.authenticated-wrapping";

  /** What requests to the KMS say of the application; Spark's own id by default. */
  public static final String APPLICATION_ID = "encryption.kms.application-id";

  /** How long an unwrapped key stays in memory, in milliseconds; 0 turns the cache off. */
  public static final String CACHE_TTL_MS = "encryption.kms.cache.ttl-ms";

  /** One hour. */
  public static final long CACHE_TTL_MS_DEFAULT = 3_600_000L;

  /** How often this JVM asks a KMS at most, in calls a second; without it, as often as needed. */
  public static final String MAX_CALLS_PER_SECOND = "encryption.kms.max-calls-per-second";

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

  /** What a name ends with in the table, in place of one of the user's. */
  private static final String ANY_NAME = ".NAME";

  /**
   * What Iceberg's own names for a KMS and its login start with: those of its AWS clients, and of
   * its client for Azure. Where a catalog is not at hand, these and ours are what a client is made
   * of; {@code settings.py} has the same list.
   */
  private static final List<String> ICEBERGS =
      List.of(
          "adls.token-credential-provider", "azure.keyvault.", "client.", "http-client.", "kms.");

  /** They change when and how often a KMS is asked, and nothing of which one, or as whom. */
  private static final List<String> OF_TIMES =
      List.of(
          "application-id",
          "cache.",
          "call-timeout-ms",
          "circuit-breaker.",
          "max-calls-per-second",
          "retry.");

  private KmsProperties() {}

  /** Whether a KMS client may read a property of this name: ours, or one of Iceberg's own. */
  public static boolean isOfKms(String name) {
    String lower = name.toLowerCase(Locale.ROOT); // catalog options have no case in Spark
    return lower.equals(KMS_TYPE)
        || lower.equals(KMS_IMPL)
        || lower.startsWith(PREFIX)
        || ICEBERGS.stream().anyMatch(lower::startsWith);
  }

  /**
   * Those properties that decide which KMS is asked, where it is, and with whose login, by names in
   * lower case.
   *
   * @throws InvalidConfigurationException when two names that differ in case have two values
   */
  public static Map<String, String> deciding(Map<String, String> properties) {
    Map<String, String> found = new TreeMap<>();
    properties.forEach(
        (name, value) -> {
          String lower = name.toLowerCase(Locale.ROOT);
          if (isOfKms(lower)
              && OF_TIMES.stream().noneMatch(one -> lower.startsWith(PREFIX + one))) {
            String before = found.put(lower, value);
            if (before != null && !before.equals(value)) {
              throw PropertyReader.twice(name);
            }
          }
        });
    return found;
  }

  /**
   * Checks the names of the properties of a client of this project.
   *
   * @param type the KMS's, such as {@code vault}
   * @throws InvalidConfigurationException when one means nothing, or something to another KMS
   */
  public static void check(String type, Map<String, String> properties) {
    TreeSet<String> known = new TreeSet<>();
    for (String section : List.of("kms", "kms." + type)) {
      PropertyTable.names(section).stream()
          .filter(name -> name.startsWith(PREFIX))
          .forEach(known::add);
    }

    for (String name : properties.keySet()) {
      String lower = name.toLowerCase(Locale.ROOT); // catalog options have no case in Spark
      if (lower.startsWith(PREFIX) && known.stream().noneMatch(one -> isOf(lower, one))) {
        throw unknown(type, name, known);
      }
    }
  }

  private static boolean isOf(String name, String known) {
    String prefix = known.substring(0, known.length() - "NAME".length());
    return known.endsWith(ANY_NAME)
        ? name.startsWith(prefix) && name.length() > prefix.length()
        : name.equals(known);
  }

  private static InvalidConfigurationException unknown(
      String type, String name, TreeSet<String> known) {
    String other =
        PropertyTable.sections().stream()
            .filter(section -> section.startsWith("kms."))
            .map(section -> section.substring("kms.".length()))
            .filter(one -> !one.equals(type))
            .filter(one -> PropertyReader.isBelow(name, PREFIX + one + "."))
            .findFirst()
            .orElse(null);
    return other == null
        ? new InvalidConfigurationException(
            String.format("There is no catalog property %s", name),
            String.format(
                "Did you mean %s? Known are %s. A misspelt one would do nothing.",
                Spelling.nearest(name, known), String.join(", ", known)))
        : new InvalidConfigurationException(
            String.format(
                "Property %s belongs to KMS type %s, but the catalog's is %s", name, other, type),
            String.format("Leave it out, or set %s=%s.", KMS_TYPE, other));
  }
}
