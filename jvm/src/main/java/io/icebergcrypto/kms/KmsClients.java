package io.icebergcrypto.kms;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.common.DynConstructors;
import org.apache.iceberg.encryption.KeyManagementClient;

/** Makes the KMS client that {@code encryption.kms-type} or {@code encryption.kms-impl} names. */
public final class KmsClients {
  private static final String TYPE_KEYSTORE = "keystore";
  private static final Set<String> LATER_TYPES = Set.of("vault", "aws", "gcp", "azure", "pkcs11");

  private KmsClients() {}

  /**
   * Makes the one client of a catalog: the KMS's own behind the cache and the counters.
   *
   * @param properties the catalog's properties
   * @return a started client; close it with the catalog
   * @throws InvalidConfigurationException when no KMS is named, two are, or its properties are
   *     wrong
   * @throws NotSupportedException when the KMS type is known but not in this version
   * @throws IcebergCryptoException when the client does not start
   */
  public static CachingKmsClient create(Map<String, String> properties) {
    long ttlMs = KmsProperties.cacheTtlMs(properties);
    String impl = implementation(properties);
    KeyManagementClient client = newClient(impl);
    try {
      client.initialize(properties);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw new IcebergCryptoException(
          String.format("KMS client %s did not start: %s", impl, e.getMessage()),
          "Check the catalog's encryption.kms.* properties and that the KMS can be reached.",
          e);
    }

    return new CachingKmsClient(client, ttlMs);
  }

  /** Whether the catalog names a KMS at all. */
  public static boolean isConfigured(Map<String, String> properties) {
    return properties.get(KmsProperties.KMS_TYPE) != null
        || properties.get(KmsProperties.KMS_IMPL) != null;
  }

  /** The error of a catalog that needs a KMS and names none. */
  public static IcebergCryptoException notConfigured() {
    return new InvalidConfigurationException(
        String.format(
            "No KMS is configured: neither %s nor %s is set",
            KmsProperties.KMS_TYPE, KmsProperties.KMS_IMPL),
        "Set spark.sql.catalog.<name>.encryption.kms-type=keystore (with "
            + KmsProperties.KEYSTORE_PATH
            + "), or kms-impl to a KeyManagementClient class.");
  }

  private static String implementation(Map<String, String> properties) {
    String type = properties.get(KmsProperties.KMS_TYPE);
    String impl = properties.get(KmsProperties.KMS_IMPL);
    if (type != null && impl != null) {
      throw new InvalidConfigurationException(
          String.format(
              "Properties %s (%s) and %s (%s) are both set",
              KmsProperties.KMS_TYPE, type, KmsProperties.KMS_IMPL, impl),
          "Keep one of the two.");
    }

    if (impl != null) {
      return impl;
    }

    if (type == null) {
      throw notConfigured();
    }

    String name = type.trim().toLowerCase(Locale.ROOT);
    if (name.equals(TYPE_KEYSTORE)) {
      return KeystoreKmsClient.class.getName();
    }

    if (LATER_TYPES.contains(name)) {
      throw new NotSupportedException(
          String.format("KMS type '%s' (%s) is not in this version", type, KmsProperties.KMS_TYPE),
          "Use kms-type=keystore, or set "
              + KmsProperties.KMS_IMPL
              + " to a KeyManagementClient class (Iceberg has"
              + " org.apache.iceberg.aws.AwsKeyManagementClient, .gcp.GcpKeyManagementClient and"
              + " .azure.keymanagement.AzureKeyManagementClient).");
    }

    throw new InvalidConfigurationException(
        String.format("Unknown KMS type '%s' (%s)", type, KmsProperties.KMS_TYPE),
        "Use keystore, or set " + KmsProperties.KMS_IMPL + " to a KeyManagementClient class.");
  }

  private static KeyManagementClient newClient(String impl) {
    try {
      return DynConstructors.builder(KeyManagementClient.class)
          .loader(Thread.currentThread().getContextClassLoader())
          .impl(impl)
          .<KeyManagementClient>buildChecked()
          .newInstance();
    } catch (NoSuchMethodException | ClassCastException e) {
      throw new InvalidConfigurationException(
          String.format(
              "%s=%s cannot be used: no class of this name with a no-argument constructor that"
                  + " implements KeyManagementClient is on the class path",
              KmsProperties.KMS_IMPL, impl),
          "Check the spelling, and that the class's jar is in spark.jars or spark.jars.packages.",
          e);
    }
  }
}
