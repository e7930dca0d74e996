package io.icebergcrypto.kms.config;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * The names below {@code encryption.kms.} that mean something to this project's clients. Any other
 * is refused: the default would be in force in its place, in silence.
 */
public final class KmsPropertyNames {
  private static final List<String> OF_ALL =
      List.of(
          "application-id",
          "authenticated-wrapping",
          "cache.ttl-ms",
          "call-timeout-ms",
          "circuit-breaker.delay-ms",
          "circuit-breaker.failures",
          "retry.initial-delay-ms",
          "retry.max-attempts",
          "retry.max-delay-ms",
          "retry.timeout-ms");

  /** By the KMS's type. One that ends with a dot stands before names of the user's. */
  private static final Map<String, List<String>> OF_TYPES =
      Map.of(
          "aws",
              List.of(
                  "access-key-id",
                  "encryption-context.",
                  "endpoint",
                  "region",
                  "secret-access-key",
                  "session-token"),
          "azure",
              List.of(
                  "algorithm", "store-key-version", "token-scope", "vault-url", "versions-to-try"),
          "gcp", List.of("additional-authenticated-data", "credentials-file", "endpoint"),
          "hadoop", List.of("allow-http", "ca-file", "uri", "user"),
          "keystore", List.of("password", "password-env", "password-file", "path"),
          "pkcs11", List.of("library", "pin", "pin-env", "pin-file", "slot", "token-label"),
          "vault",
              List.of(
                  "address",
                  "allow-http",
                  "approle-mount",
                  "ca-file",
                  "cert-file",
                  "cert-key",
                  "cert-key-file",
                  "cert-mount",
                  "cert-role",
                  "jwt",
                  "jwt-env",
                  "jwt-file",
                  "jwt-mount",
                  "jwt-role",
                  "kubernetes-mount",
                  "kubernetes-role",
                  "kubernetes-token-file",
                  "namespace",
                  "read-bare",
                  "role-id",
                  "secret-id",
                  "secret-id-env",
                  "secret-id-file",
                  "token",
                  "token-env",
                  "token-file",
                  "transit-mount",
                  "wrapped-format"));

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
      List.of("application-id", "cache.", "call-timeout-ms", "circuit-breaker.", "retry.");

  private KmsPropertyNames() {}

  /** Whether a KMS client may read a property of this name: ours, or one of Iceberg's own. */
  public static boolean isOfKms(String name) {
    String lower = name.toLowerCase(Locale.ROOT); // catalog options have no case in Spark
    return lower.equals(KmsProperties.KMS_TYPE)
        || lower.equals(KmsProperties.KMS_IMPL)
        || lower.startsWith(KmsProperties.PREFIX)
        || ICEBERGS.stream().anyMatch(lower::startsWith);
  }

  /**
   * Those properties that decide which KMS is asked, where it is, and with whose login, by names in
   * lower case.
   */
  public static Map<String, String> deciding(Map<String, String> properties) {
    Map<String, String> found = new TreeMap<>();
    properties.forEach(
        (name, value) -> {
          String lower = name.toLowerCase(Locale.ROOT);
          if (isOfKms(lower)
              && OF_TIMES.stream().noneMatch(one -> lower.startsWith(KmsProperties.PREFIX + one))) {
            found.put(lower, value);
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
    OF_ALL.forEach(name -> known.add(KmsProperties.PREFIX + name));
    OF_TYPES.get(type).forEach(name -> known.add(KmsProperties.PREFIX + type + "." + name));
    for (String name : properties.keySet()) {
      String lower = name.toLowerCase(Locale.ROOT); // catalog options have no case in Spark
      if (lower.startsWith(KmsProperties.PREFIX)
          && known.stream().noneMatch(one -> isOf(lower, one))) {
        throw unknown(type, name, known);
      }
    }
  }

  private static boolean isOf(String name, String known) {
    return known.endsWith(".")
        ? name.startsWith(known) && name.length() > known.length()
        : name.equals(known);
  }

  private static String shown(String known) {
    return known.endsWith(".") ? known + "NAME" : known;
  }

  private static InvalidConfigurationException unknown(
      String type, String name, TreeSet<String> known) {
    String other =
        OF_TYPES.keySet().stream()
            .filter(one -> !one.equals(type))
            .filter(one -> name.startsWith(KmsProperties.PREFIX + one + "."))
            .findFirst()
            .orElse(null);
    return other == null
        ? new InvalidConfigurationException(
            String.format("There is no catalog property %s", name),
            String.format(
                "Did you mean %s? Known are %s. A misspelt one would do nothing.",
                shown(Spelling.nearest(name, known)),
                known.stream().map(KmsPropertyNames::shown).collect(Collectors.joining(", "))))
        : new InvalidConfigurationException(
            String.format(
                "Property %s is one of the KMS type %s, and the catalog's is %s",
                name, other, type),
            String.format("Leave it out, or set %s=%s.", KmsProperties.KMS_TYPE, other));
  }
}
