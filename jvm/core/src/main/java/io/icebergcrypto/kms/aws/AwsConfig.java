package io.icebergcrypto.kms.aws;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import java.net.URI;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;

/**
 * What a catalog's properties say of AWS KMS; travels to executors. Of all the catalog's properties
 * it keeps Iceberg's own for AWS clients and for KMS, and no secret.
 *
 * @param region null: the SDK finds it, in AWS_REGION, a profile or the instance's metadata
 * @param endpoint null: AWS's own of the region
 * @param algorithm the key's algorithm; SYMMETRIC_DEFAULT but for RSA and SM2 keys
 * @param context the encryption context; empty: none, as Iceberg's own client has none; {@link
 *     #TABLE_UUID} as a value stands for the table's UUID
 * @param timeLimit of one call
 * @param properties Iceberg's, for its AwsClientProperties and AwsProperties; by names in any case
 */
public record AwsConfig(
    String region,
    String endpoint,
    String algorithm,
    Map<String, String> context,
    TimeLimit timeLimit,
    Map<String, String> properties)
    implements KmsConfig {
  static final String REGION = "encryption.kms.aws.region";
  static final String ENDPOINT = "encryption.kms.aws.endpoint";
  static final String CONTEXT = "encryption.kms.aws.encryption-context.";
  static final String TABLE_UUID = "{table-uuid}";
  static final String ALGORITHM = "kms.encryption-algorithm-spec";
  static final String SYMMETRIC = "SYMMETRIC_DEFAULT";
  static final String FACTORY = "client.factory";

  private static final Pattern PLACEHOLDER = Pattern.compile("\\{[A-Za-z_-]*}");
  private static final List<String> SECRETS =
      List.of(
          "encryption.kms.aws.access-key-id",
          "encryption.kms.aws.secret-access-key",
          "encryption.kms.aws.session-token");
  private static final String ICEBERG_REGION = "client.region";
  private static final String ICEBERG_ENDPOINT = "kms.endpoint";
  private static final String PROXY = "http-client.proxy-endpoint";
  private static final String PROXY_SETTINGS = "http-client.proxy-";
  private static final List<String> SDKS_PROXIES =
      List.of(
          "http-client.proxy-use-system-property-values",
          "http-client.proxy-use-environment-variable-values");
  private static final String ROLE_TAGS = "client.assume-role.tags.";
  private static final List<String> ICEBERGS = List.of("client.", "http-client.", "kms.");

  /**
   * Reads the properties.
   *
   * @throws InvalidConfigurationException when one is wrong, contradicts another, or would hold a
   *     secret
   * @throws NoClassDefFoundError when the AWS SDK is missing
   */
  public static AwsConfig of(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    Map<String, String> kept = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    properties.forEach(
        (name, value) -> {
          if (ICEBERGS.stream().anyMatch(prefix -> PropertyReader.isBelow(name, prefix))) {
            if (!PropertyReader.isBelow(name, ROLE_TAGS)) {
              reader.refuseIfNamedAsSecret(name);
            }

            kept.put(name, value);
          }
        });

    refuseSecrets(reader);
    String region = reader.either(REGION, ICEBERG_REGION);
    String endpoint = reader.either(ENDPOINT, ICEBERG_ENDPOINT);
    if (region != null) {
      kept.put(ICEBERG_REGION, region);
    }

    if (endpoint != null) {
      String property = reader.optional(ENDPOINT) == null ? ICEBERG_ENDPOINT : ENDPOINT;
      requirePrivate(property, endpoint, requireUrl(property, endpoint));
      kept.put(ICEBERG_ENDPOINT, endpoint);
    }

    if (kept.containsKey(PROXY)) {
      requireUrl(PROXY, kept.get(PROXY));
    }

    String algorithm = reader.optional(ALGORITHM, SYMMETRIC);
    AwsKeys.requireAlgorithm(algorithm); // and that the SDK is on the class path
    return new AwsConfig(
        region, endpoint, algorithm, context(reader, algorithm), TimeLimit.of(reader), kept);
  }

  @Override
  public MasterKeys open() {
    return new AwsKeys(this);
  }

  /** Whether the key is symmetric: with RSA and SM2 anyone with the public half wraps. */
  @Override
  public boolean authenticatesWrapping() {
    return algorithm.equals(SYMMETRIC);
  }

  @Override
  public String toString() {
    if (endpoint != null) {
      return "AWS KMS at " + endpoint;
    }

    return region == null ? "AWS KMS" : "AWS KMS in " + region;
  }

  /** Whether Iceberg's own properties say which proxy there is. */
  boolean namesProxy() {
    return properties.keySet().stream()
        .anyMatch(name -> PropertyReader.isBelow(name, PROXY_SETTINGS));
  }

  /**
   * Iceberg's properties, for a client without any other proxy than this one.
   *
   * @param proxy host and port; null: none
   */
  Map<String, String> throughProxy(String proxy) {
    Map<String, String> result = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
    result.putAll(properties);
    SDKS_PROXIES.forEach(name -> result.put(name, "false"));
    if (proxy != null) {
      result.put(PROXY, "http://" + proxy);
    }

    return result;
  }

  /** Where KMS is, as far as the properties say; for errors. */
  URI address() {
    return URI.create(
        endpoint != null
            ? endpoint
            : "https://kms." + (region == null ? "" : region + ".") + "amazonaws.com");
  }

  /** Whether another class than the SDK's chain gives the credentials. */
  boolean hasCredentialsProvider() {
    return properties.containsKey("client.credentials-provider");
  }

  /** Whether another class than ours makes the SDK's client. */
  boolean hasFactory() {
    return properties.containsKey(FACTORY);
  }

  /** Whether the table's UUID is in the encryption context. */
  @Override
  public boolean bindsTable() {
    return context.containsValue(TABLE_UUID);
  }

  /**
   * The encryption context of this thread's call; null: none.
   *
   * @throws InvalidConfigurationException when the table's UUID is in it, and the caller did not
   *     give it
   */
  Map<String, String> contextOfCall() {
    Map<String, String> filled = new TreeMap<>(context);
    filled.replaceAll(
        (name, value) ->
            value.equals(TABLE_UUID)
                ? CallContext.requireTableUuid(CONTEXT + name + "=" + TABLE_UUID)
                : value);
    return filled.isEmpty() ? null : filled;
  }

  private static Map<String, String> context(PropertyReader reader, String algorithm) {
    Map<String, String> context = new TreeMap<>(reader.withPrefix(CONTEXT));
    context.forEach(
        (name, value) -> {
          if (value.isBlank()) {
            throw new InvalidConfigurationException(
                "Property " + CONTEXT + name + " is empty", "Give it a value, or leave it out.");
          }

          if (name.toLowerCase(Locale.ROOT).startsWith("aws:")) {
            throw new InvalidConfigurationException(
                "Property " + CONTEXT + name + ": names that start with aws: are reserved by AWS",
                "Choose another name for this part of the encryption context.");
          }

          refuseUnknownPlaceholder(name, value);
        });
    if (!context.isEmpty() && !algorithm.equals(SYMMETRIC)) {
      throw new InvalidConfigurationException(
          String.format(
                  "%s=%s supports no encryption context, but %s is set",
                  ALGORITHM, algorithm, CONTEXT)
              + context.keySet(),
          "Use a symmetric key, or leave the encryption context out.");
    }

    return context;
  }

  /** A misspelt one would be the same for all tables. */
  private static void refuseUnknownPlaceholder(String name, String value) {
    if (!value.equals(TABLE_UUID) && PLACEHOLDER.matcher(value).find()) {
      throw new InvalidConfigurationException(
          String.format("Property %s%s cannot be '%s'", CONTEXT, name, value),
          value.contains("{catalog}")
              ? "Write a fixed name: a catalog may have another name in each session, and keys"
                  + " bound to one could not be unwrapped in another."
              : TABLE_UUID + " is the only placeholder, and must be the whole value.");
    }
  }

  private static void refuseSecrets(PropertyReader reader) {
    for (String secret : SECRETS) {
      reader.refuseSecret(
          secret,
          "AWS's own variables (AWS_ACCESS_KEY_ID, ...), AWS_PROFILE, a role of the host, or"
              + " client.credentials-provider");
    }
  }

  private static URI requireUrl(String property, String value) {
    URI uri =
        HttpsAddress.parse(value)
            .orElseThrow(
                () ->
                    new InvalidConfigurationException(
                        String.format("Property %s is not a URL: '%s'", property, value),
                        "Give one such as https://kms.eu-central-1.amazonaws.com."));
    if (uri.getRawUserInfo() != null) {
      throw new InvalidConfigurationException(
          "Property " + property + " has a login in its URL", "Leave the login out of the URL.");
    }

    return uri;
  }

  /** Keys are in what KMS is sent and answers: they leave this machine by TLS only. */
  private static void requirePrivate(String property, String value, URI uri) {
    if (!HttpsAddress.isPrivate(uri)) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is http, which would send keys in plaintext: %s", property, value),
          "Use https; http is for a KMS on this machine only (localhost, 127.0.0.1, [::1]).");
    }
  }
}
