package io.icebergcrypto.kms.gcp;

import com.google.auth.oauth2.GoogleCredentials;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.TimeLimit;
import io.icebergcrypto.kms.config.HttpsAddress;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import java.net.URI;
import java.util.Map;

/**
 * What a catalog's properties say of Google Cloud KMS.
 *
 * @param endpoint such as {@code https://cloudkms.googleapis.com}, without a slash at its end
 * @param credentialsFile null: application default credentials
 * @param aad what Cloud KMS authenticates with each wrapped key
 * @param timeLimit of one request, and of one login
 */
public record GcpConfig(String endpoint, String credentialsFile, Aad aad, TimeLimit timeLimit)
    implements KmsConfig {
  static final String ENDPOINT = "encryption.kms.gcp.endpoint";
  static final String CREDENTIALS_FILE = "encryption.kms.gcp.credentials-file";
  static final String AAD = "encryption.kms.gcp.additional-authenticated-data";

  private static final String DEFAULT_ENDPOINT = "https://cloudkms.googleapis.com";

  /** The choices of additional authenticated data. */
  enum Aad {
    NONE,
    KEY_ID,
    TABLE_UUID
  }

  /**
   * Reads the catalog's properties. Nothing is asked of the network, and no credential is read.
   *
   * @throws InvalidConfigurationException when a property's value cannot be
   * @throws NoClassDefFoundError when Google's library for logins is missing
   */
  public static GcpConfig of(Map<String, String> properties) {
    GcpConfig config = read(properties);
    GoogleCredentials.class.getName(); // fails early where the library is missing
    return config;
  }

  static GcpConfig read(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    return new GcpConfig(
        endpoint(reader.optional(ENDPOINT, DEFAULT_ENDPOINT)),
        reader.optional(CREDENTIALS_FILE),
        aad(reader.optional(AAD, "none")),
        TimeLimit.of(reader));
  }

  @Override
  public boolean limitsRequests() {
    return true;
  }

  @Override
  public MasterKeys open() {
    return new GcpKeys(this);
  }

  @Override
  public boolean bindsTable() {
    return aad == Aad.TABLE_UUID;
  }

  @Override
  public String toString() {
    return "Google Cloud KMS at " + endpoint;
  }

  private static String endpoint(String value) {
    String address = value.endsWith("/") ? value.substring(0, value.length() - 1) : value;
    if (HttpsAddress.problem(address) != null
        || !HttpsAddress.isPrivate(URI.create(address))
        || !URI.create(address).getPath().isEmpty()) {
      throw new InvalidConfigurationException(
          String.format("Property %s is not an address of Cloud KMS: '%s'", ENDPOINT, value),
          "Give https:// and a host, such as "
              + DEFAULT_ENDPOINT
              + ", or leave it out; http:// is for tests on 127.0.0.1 only.");
    }

    return address;
  }

  private static Aad aad(String value) {
    return switch (value) {
      case "key-id" -> Aad.KEY_ID;
      case "table-uuid" -> Aad.TABLE_UUID;
      case "none" -> Aad.NONE;
      default ->
          throw new InvalidConfigurationException(
              String.format("Property %s is neither key-id, table-uuid nor none: '%s'", AAD, value),
              "Leave it out (none), unless all who read the tables set it to the same.");
    };
  }
}
