package io.icebergcrypto.kms.vault;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import java.net.URI;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Where a Vault is, which of its engines holds the keys, and where the login's secret is.
 * References only, so that it may travel.
 *
 * @param address such as {@code https://vault:8200}, without a slash at its end
 * @param allowHttp whether plain http may leave this machine
 * @param namespace an Enterprise namespace, or null
 * @param mount the path of the transit engine, without slashes around it
 * @param bare whether keys are wrapped as Vault's ciphertext alone
 * @param readBare whether such keys are unwrapped
 * @param caFile PEM certificates that are trusted instead of Java's own, or null
 * @param timeLimit of one call
 * @param token where the token is; null when a login makes tokens
 * @param auth the login that makes tokens; null with a token
 */
public record VaultConfig(
    String address,
    boolean allowHttp,
    String namespace,
    String mount,
    boolean bare,
    boolean readBare,
    String caFile,
    TimeLimit timeLimit,
    SecretSource token,
    VaultAuth auth)
    implements KmsConfig {
  static final String ADDRESS = "encryption.kms.vault.address";
  static final String ALLOW_HTTP = "encryption.kms.vault.allow-http";
  static final String NAMESPACE = "encryption.kms.vault.namespace";
  static final String TRANSIT_MOUNT = "encryption.kms.vault.transit-mount";
  static final String WRAPPED_FORMAT = "encryption.kms.vault.wrapped-format";
  static final String READ_BARE = "encryption.kms.vault.read-bare";
  static final String CA_FILE = "encryption.kms.vault.ca-file";
  static final String TOKEN_ENV = "encryption.kms.vault.token-env";
  static final String TOKEN_FILE = "encryption.kms.vault.token-file";

  /** What else writes the token's file, and would open it again. */
  private static final String AGENT =
      ". Vault Agent's file sink makes it 0640 at each login: set mode = 0600 in the sink, with"
          + " Spark's user as its owner.";

  private static final Pattern PATH = Pattern.compile("[\\w-][\\w.-]*(/[\\w-][\\w.-]*)*");

  /**
   * Reads the catalog's properties.
   *
   * @throws InvalidConfigurationException when one is missing, wrong, or would hold a secret
   */
  public static VaultConfig of(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    reader.refuseSecret("encryption.kms.vault.token", TOKEN_ENV + " or " + TOKEN_FILE);
    Optional<SecretSource> token =
        SecretSource.optional(reader, TOKEN_ENV, TOKEN_FILE).map(found -> found.advising(AGENT));
    Optional<VaultAuth> auth = VaultAuth.read(reader);
    if (token.isPresent() == auth.isPresent()) {
      throw new InvalidConfigurationException(
          auth.map(login -> "Vault has both a token and a login: " + login)
              .orElse("Vault has nothing to log in with"),
          String.format(
              "Set one of %s, %s, %s with %s, %s, %s with %s, or %s with %s.",
              TOKEN_ENV,
              TOKEN_FILE,
              VaultAuth.ROLE_ID,
              VaultAuth.SECRET_ID_FILE,
              VaultAuth.KUBERNETES_ROLE,
              VaultAuth.JWT_ROLE,
              VaultAuth.JWT_FILE,
              VaultAuth.CERT_FILE,
              VaultAuth.CERT_KEY_FILE));
    }

    boolean bare = isBare(reader.optional(WRAPPED_FORMAT, "header"));
    return new VaultConfig(
        address(reader),
        reader.flag(ALLOW_HTTP, false),
        path(reader, NAMESPACE, null),
        path(reader, TRANSIT_MOUNT, "transit"),
        bare,
        reader.flag(READ_BARE, false) || bare,
        reader.optional(CA_FILE),
        TimeLimit.of(reader),
        token.orElse(null),
        auth.orElse(null));
  }

  private static boolean isBare(String format) {
    return switch (format.toLowerCase(Locale.ROOT)) {
      case "header" -> false;
      case "bare" -> true;
      default ->
          throw new InvalidConfigurationException(
              String.format("Property %s is '%s'", WRAPPED_FORMAT, format),
              "Use header (the default), or bare for clients that do not know the header.");
    };
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
    List<String> found = new ArrayList<>();
    if (caFile != null) {
      found.add(SecretSource.contentHash(Path.of(caFile)));
    }

    if (auth != null && auth.secret() != null) {
      found.add(auth.secret().nowThere());
    }

    if (auth != null && auth.certificate() != null) {
      found.add(SecretSource.contentHash(Path.of(auth.certificate().file())));
      found.add(auth.certificate().key().nowThere());
    }

    return found;
  }

  @Override
  public MasterKeys open() {
    return new VaultKeys(this);
  }

  /** A token is renewed for as long as it is held, and would be lost. */
  @Override
  public boolean mayCloseWhenIdle() {
    return false;
  }

  /** Where the login's secret is, for errors. */
  String login() {
    return auth == null ? "token of " + token : auth.toString();
  }

  /** What errors call this Vault. */
  @Override
  public String toString() {
    return "Vault at "
        + address
        + " ("
        + mount
        + (namespace == null ? "" : ", namespace " + namespace)
        + ")";
  }

  private static String address(PropertyReader reader) {
    String value = reader.required(ADDRESS, "https://vault.example.com:8200");
    String problem = HttpsAddress.problem(value);
    if (problem != null) {
      throw badAddress(problem);
    }

    URI uri = URI.create(value);
    if (!HttpsAddress.isHttps(uri) && reader.optional(VaultAuth.CERT_FILE) != null) {
      throw new InvalidConfigurationException(
          String.format("Property %s is http, but the login is by TLS certificate", ADDRESS),
          "Use https: there is no certificate without TLS.");
    }

    if (!HttpsAddress.isPrivate(uri) && !reader.flag(ALLOW_HTTP, false)) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is http, which would send tokens and keys to %s in plaintext",
              ADDRESS, uri.getHost()),
          "Use https, or set " + ALLOW_HTTP + "=true if something else encrypts the connection.");
    }

    return value.replaceAll("/+$", "");
  }

  /** The value is not shown: it may hold a password. */
  private static InvalidConfigurationException badAddress(String problem) {
    return new InvalidConfigurationException(
        "Property " + ADDRESS + " " + problem,
        "Give Vault's URL, such as https://vault.example.com:8200.");
  }

  /** A path in Vault, without the slashes that people write around it. */
  static String path(PropertyReader reader, String property, String defaultValue) {
    String value = reader.optional(property, defaultValue);
    if (value == null) {
      return null;
    }

    String path = value.replaceAll("^/+|/+$", "");
    if (!PATH.matcher(path).matches()) {
      throw new InvalidConfigurationException(
          String.format("Property %s is not a path in Vault: '%s'", property, value),
          "Use letters, digits, '_', '-' and '.', and '/' between the parts, such as "
              + (defaultValue == null ? "team/data" : defaultValue)
              + ".");
    }

    return path;
  }
}
