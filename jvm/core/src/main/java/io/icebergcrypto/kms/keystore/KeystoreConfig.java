package io.icebergcrypto.kms.keystore;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.config.KmsConfig;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SecretSource;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;

/**
 * Where a keystore and its password are.
 *
 * @param file the path of the PKCS12 file
 */
public record KeystoreConfig(String file, SecretSource password) implements KmsConfig {
  /**
   * Reads the catalog's properties.
   *
   * @throws InvalidConfigurationException when one is missing, wrong, or would hold a secret
   */
  public static KeystoreConfig of(Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    reader.refuseSecret(
        "encryption.kms.keystore.password",
        KmsProperties.KEYSTORE_PASSWORD_ENV + " or " + KmsProperties.KEYSTORE_PASSWORD_FILE);
    String file = reader.required(KmsProperties.KEYSTORE_PATH, "/etc/spark/keys.p12");
    return new KeystoreConfig(
        file,
        SecretSource.required(
            reader, KmsProperties.KEYSTORE_PASSWORD_ENV, KmsProperties.KEYSTORE_PASSWORD_FILE));
  }

  /**
   * Reads the keystore.
   *
   * @throws io.icebergcrypto.IcebergCryptoException as {@link KeystoreFile#read} does
   */
  @Override
  public MasterKeys open() {
    return new KeystoreKeys(this);
  }

  Path path() {
    try {
      return Path.of(file);
    } catch (InvalidPathException e) {
      throw new InvalidConfigurationException(
          String.format("%s (%s) cannot be a path", file, KmsProperties.KEYSTORE_PATH),
          "Give the path of a PKCS12 file.",
          e);
    }
  }

  @Override
  public String toString() {
    return "keystore " + file;
  }
}
