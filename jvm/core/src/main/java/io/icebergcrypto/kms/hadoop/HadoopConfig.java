package io.icebergcrypto.kms.hadoop;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import java.net.URI;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Where a Hadoop KMS is, and as which user it is asked. It holds no secret, so it may travel.
 *
 * @param uri as in Hadoop's {@code hadoop.security.key.provider.path}
 * @param user the name that simple authentication tells; null: the login of the process
 * @param caFile PEM certificates that are trusted instead of Java's own, or null
 * @param timeLimit of one request
 */
public record HadoopConfig(String uri, String user, String caFile, TimeLimit timeLimit)
    implements KmsConfig {
  static final String URI_PROPERTY = "encryption.kms.hadoop.uri";
  static final String USER = "encryption.kms.hadoop.user";
  static final String CA_FILE = "encryption.kms.hadoop.ca-file";
  static final String ALLOW_HTTP = "encryption.kms.hadoop.allow-http";

  private static final String EXAMPLE = "kms://https@kms.example.com:9600/kms";

  /** Hadoop's form: the protocol as the user, hosts separated by semicolons, one port for all. */
  private static final Pattern FORM =
      Pattern.compile(
          "kms://(?<scheme>https?)@(?<hosts>[\\w.-]+(;[\\w.-]+)*|\\[[\\da-fA-F:]+])"
              + "(?<port>:\\d{1,5})?(?<path>(/\\w[\\w.-]*)*)/?");

  private static final Pattern USER_NAME = Pattern.compile("[\\w.@/-]+");

  /**
   * Reads the catalog's properties.
   *
   * @throws InvalidConfigurationException when one is missing or wrong
   */
  public static HadoopConfig of(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    String user = reader.optional(USER);
    if (user != null && !USER_NAME.matcher(user).matches()) {
      throw new InvalidConfigurationException(
          String.format("Property %s is not a user's name: '%s'", USER, user),
          "Give the name that the KMS's access control lists have, such as spark.");
    }

    HadoopConfig config =
        new HadoopConfig(
            reader.required(URI_PROPERTY, EXAMPLE),
            user,
            reader.optional(CA_FILE),
            TimeLimit.of(reader));
    for (URI server : config.servers()) {
      if (!HttpsAddress.isPrivate(server) && !reader.flag(ALLOW_HTTP, false)) {
        throw new InvalidConfigurationException(
            String.format(
                "Property %s is http, which would send keys to %s in plaintext",
                URI_PROPERTY, server.getHost()),
            String.format(
                "Use kms://https@, or set %s=true if something else encrypts the connection.",
                ALLOW_HTTP));
      }
    }

    return config;
  }

  /** The addresses of its servers, of which each has all keys. */
  URI[] servers() {
    Matcher parts = FORM.matcher(uri);
    if (!parts.matches()) {
      // not shown: it may hold a password
      throw new InvalidConfigurationException(
          String.format("Property %s is not the URI of a Hadoop KMS", URI_PROPERTY),
          "Give it as hadoop.security.key.provider.path does, such as "
              + EXAMPLE
              + "; several hosts are separated by semicolons.");
    }

    String port = parts.group("port") == null ? "" : parts.group("port");
    return Stream.of(parts.group("hosts").split(";"))
        .map(host -> parts.group("scheme") + "://" + host + port + parts.group("path"))
        .map(HadoopConfig::address)
        .toArray(URI[]::new);
  }

  private static URI address(String text) {
    return HttpsAddress.parse(text)
        .orElseThrow(
            () ->
                new InvalidConfigurationException(
                    String.format("Property %s names an invalid host", URI_PROPERTY),
                    "Give host names or addresses, such as " + EXAMPLE + "."));
  }

  @Override
  public boolean limitsRequests() {
    return true;
  }

  @Override
  public boolean mayBeShared() {
    return true;
  }

  @Override
  public List<String> nowThere() {
    return caFile == null ? List.of() : List.of(SecretSource.contentHash(Path.of(caFile)));
  }

  @Override
  public MasterKeys open() {
    return new HadoopKeys(this);
  }

  /** The user that asks, for errors. */
  String login() {
    return user == null ? "the login of this process" : "user '" + user + "'";
  }

  /** What errors call this KMS. */
  @Override
  public String toString() {
    return "Hadoop KMS at " + uri;
  }
}
