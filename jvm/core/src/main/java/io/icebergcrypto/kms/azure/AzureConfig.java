package io.icebergcrypto.kms.azure;

import com.azure.identity.DefaultAzureCredentialBuilder;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import java.net.URI;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a catalog's properties say of Azure; travels to executors. There is no secret in it: where
 * the credential comes from is the environment's business, or that of a class that the user names.
 *
 * @param vault scheme, host and port of the vault, without a slash at the end
 * @param scope what an access token is asked for
 * @param algorithm Azure's name of the wrapping algorithm
 * @param storeKeyVersion whether a blob holds the version of the master key
 * @param versionsToTry how many versions of a key one blob is tried with
 * @param timeLimit of one request
 * @param credential Iceberg's properties that name a credential provider; empty: Azure's default
 */
public record AzureConfig(
    URI vault,
    String scope,
    String algorithm,
    boolean storeKeyVersion,
    int versionsToTry,
    TimeLimit timeLimit,
    Map<String, String> credential)
    implements KmsConfig {
  static final String VAULT_URL = "encryption.kms.azure.vault-url";
  static final String ALGORITHM = "encryption.kms.azure.algorithm";
  static final String STORE_KEY_VERSION = "encryption.kms.azure.store-key-version";
  static final String VERSIONS_TO_TRY = "encryption.kms.azure.versions-to-try";
  static final String TOKEN_SCOPE = "encryption.kms.azure.token-scope";

  /** Those of Iceberg's own client ({@code org.apache.iceberg.azure.AzureProperties}). */
  static final String STOCK_VAULT_URL = "azure.keyvault.url";

  static final String STOCK_ALGORITHM = "azure.keyvault.key-wrap-algorithm";
  static final String CREDENTIAL_PROVIDER = "adls.token-credential-provider";

  private static final String DEFAULT_ALGORITHM = "RSA-OAEP-256";
  private static final Set<String> AES_KEY_WRAP = Set.of("A128KW", "A192KW", "A256KW");
  private static final Set<String> RSA_OAEP = Set.of(DEFAULT_ALGORITHM, "RSA-OAEP");

  /** Where Azure's clouds have their vaults. A token goes nowhere else unless the user says so. */
  private static final Set<String> SERVICES =
      Set.of(
          "vault.azure.net",
          "managedhsm.azure.net",
          "vault.azure.cn",
          "managedhsm.azure.cn",
          "vault.usgovcloudapi.net",
          "managedhsm.usgovcloudapi.net");

  /**
   * Reads the properties.
   *
   * @throws InvalidConfigurationException when one is missing, wrong, or contradicts another
   * @throws NoClassDefFoundError when Azure's library for logins is missing
   */
  public static AzureConfig of(Map<String, String> properties) {
    DefaultAzureCredentialBuilder.class.getName(); // fails early where the library is missing
    return read(properties);
  }

  static AzureConfig read(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    URI vault = vault(reader);
    return new AzureConfig(
        vault,
        scope(reader, vault),
        algorithm(reader),
        reader.flag(STORE_KEY_VERSION, false),
        reader.count(VERSIONS_TO_TRY, 50, 1, "a number of key versions, 1 or more", "50"),
        TimeLimit.of(reader),
        credential(reader));
  }

  @Override
  public MasterKeys open() {
    return new AzureKeys(this);
  }

  /** Whether it is AES key wrap: with RSA anyone with the public half wraps. */
  @Override
  public boolean authenticatesWrapping() {
    return wrapsWithAes();
  }

  boolean wrapsWithAes() {
    return AES_KEY_WRAP.contains(algorithm);
  }

  /** As errors name the KMS. */
  @Override
  public String toString() {
    String product = vault.getHost().contains(".managedhsm.") ? "Managed HSM" : "Key Vault";
    return "Azure " + product + " at " + vault;
  }

  /** Scheme, host in lower case, and the port unless it is the one that https has anyway. */
  static URI origin(URI uri) {
    String host = uri.getHost().toLowerCase(Locale.ROOT);
    int port = uri.getPort();
    return URI.create("https://" + host + (port < 0 || port == 443 ? "" : ":" + port));
  }

  private static URI vault(PropertyReader reader) {
    String ours = reader.optional(VAULT_URL);
    String stock = reader.optional(STOCK_VAULT_URL);
    if (ours == null && stock == null) {
      reader.required(VAULT_URL, "https://NAME.vault.azure.net"); // throws
    }

    URI vault = vault(ours == null ? STOCK_VAULT_URL : VAULT_URL, ours == null ? stock : ours);
    if (ours != null && stock != null && !vault.equals(vault(STOCK_VAULT_URL, stock))) {
      throw reader.contradiction(VAULT_URL, STOCK_VAULT_URL);
    }

    return vault;
  }

  private static URI vault(String property, String value) {
    if (HttpsAddress.problem(value) == null) {
      URI uri = URI.create(value);
      if (HttpsAddress.isHttps(uri) && uri.getPath().replace("/", "").isEmpty()) {
        return origin(uri);
      }
    }

    throw new InvalidConfigurationException(
        String.format("Property %s is not the https address of a vault: '%s'", property, value),
        "Give scheme and host alone, such as https://NAME.vault.azure.net or"
            + " https://NAME.managedhsm.azure.net.");
  }

  private static String scope(PropertyReader reader, URI vault) {
    String given = reader.optional(TOKEN_SCOPE);
    if (given != null) {
      return given;
    }

    String host = vault.getHost();
    String service = host.substring(host.indexOf('.') + 1);
    if (SERVICES.contains(service)) {
      return "https://" + service + "/.default";
    }

    throw new InvalidConfigurationException(
        String.format("%s is not one of Azure's own hosts for vaults: %s", VAULT_URL, vault),
        "Check the address. If this is another cloud or an Azure Stack Hub, name the scope of"
            + " tokens with "
            + TOKEN_SCOPE
            + ", such as https://vault.azure.net/.default.");
  }

  private static String algorithm(PropertyReader reader) {
    String given = reader.either(ALGORITHM, STOCK_ALGORITHM);
    String algorithm = given == null ? DEFAULT_ALGORITHM : given;
    if (RSA_OAEP.contains(algorithm) || AES_KEY_WRAP.contains(algorithm)) {
      return algorithm;
    }

    throw new InvalidConfigurationException(
        String.format(
            "Property %s has an algorithm that cannot be used: '%s'",
            reader.optional(ALGORITHM) != null ? ALGORITHM : STOCK_ALGORITHM, algorithm),
        algorithm.equals("RSA1_5")
            ? "RSA1_5 is unsafe (Bleichenbacher's attack): use RSA-OAEP-256."
            : "Use RSA-OAEP-256 (or, for tables that were written with it, RSA-OAEP) with an RSA"
                + " key, or A128KW, A192KW or A256KW with an AES key of a Managed HSM.");
  }

  /** Nothing else of {@code adls.*}, where Iceberg allows keys and tokens of a storage account. */
  private static Map<String, String> credential(PropertyReader reader) {
    Map<String, String> found = new TreeMap<>();
    String provider = reader.optional(CREDENTIAL_PROVIDER);
    if (provider != null) {
      found.put(CREDENTIAL_PROVIDER, provider);
      reader
          .withPrefix(CREDENTIAL_PROVIDER + ".")
          .forEach(
              (name, value) -> {
                String property = CREDENTIAL_PROVIDER + "." + name;
                reader.refuseIfNamedAsSecret(property);
                found.put(property, value);
              });
    }

    return found;
  }
}
