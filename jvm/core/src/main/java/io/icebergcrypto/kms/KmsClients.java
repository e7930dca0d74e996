package io.icebergcrypto.kms;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.KmsCaller;
import io.icebergcrypto.kms.call.Resilience;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.Settings;
import io.icebergcrypto.kms.http.HeaderValues;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.apache.iceberg.common.DynConstructors;
import org.apache.iceberg.encryption.KeyManagementClient;

/** Makes the KMS client that {@code encryption.kms-type} or {@code encryption.kms-impl} names. */
public final class KmsClients {
  private static final String PACKAGE = "io.icebergcrypto.kms.";

  /** What a KMS type stands for, and the Maven package that it needs beside ours; null: none. */
  private record Type(String implementation, String coordinate) {}

  private static final Map<String, Type> TYPES =
      new TreeMap<>(
          Map.of(
              "keystore", new Type(PACKAGE + "KeystoreKmsClient", null),
              "vault", new Type(PACKAGE + "VaultKmsClient", null),
              "pkcs11", new Type(PACKAGE + "Pkcs11KmsClient", null),
              "aws",
                  new Type(
                      PACKAGE + "AwsKmsClient", "org.apache.iceberg:iceberg-aws-bundle:1.12.0"),
              "gcp",
                  new Type(
                      PACKAGE + "GcpKmsClient",
                      "com.google.auth:google-auth-library-oauth2-http:1.50.0"),
              "azure", new Type(PACKAGE + "AzureKmsClient", "com.azure:azure-identity:1.18.4")));

  private KmsClients() {}

  /**
   * Makes the one client of a catalog: the KMS's own behind the cache and the counters.
   *
   * @param properties the catalog's properties
   * @return a started client; close it with the catalog
   * @throws InvalidConfigurationException when no KMS is named, two are, or its properties are
   *     wrong
   * @throws IcebergCryptoException when the client does not start
   */
  public static CachingKmsClient create(Map<String, String> properties) {
    long ttlMs =
        new Settings(properties)
            .number(
                KmsProperties.CACHE_TTL_MS,
                KmsProperties.CACHE_TTL_MS_DEFAULT,
                0,
                "a number of milliseconds, 0 or more",
                "3600000 for an hour, or 0 to turn the cache off");
    Resilience.Limits limits = Resilience.Limits.of(properties);
    String application = KmsCaller.application(properties);
    Type type = type(properties);
    try {
      KeyManagementClient client = newClient(type.implementation());
      boolean authenticated = authenticatedWrapping(client, properties);
      client.initialize(properties);
      return new CachingKmsClient(client, ttlMs, limits, authenticated, application);
    } catch (LinkageError e) {
      throw missingLibrary(type.implementation(), e);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      if (HeaderValues.areQuotedBy(e)) {
        throw HeaderValues.refused("KMS client " + type.implementation());
      }

      throw new IcebergCryptoException(
          String.format("KMS client %s did not start: %s", type.implementation(), e.getMessage()),
          "Check the catalog's encryption.kms.* properties and that the KMS can be reached.",
          e);
    }
  }

  /**
   * What the user says of the client's wrapping, which only is heard where the client is silent.
   */
  private static boolean authenticatedWrapping(
      KeyManagementClient client, Map<String, String> properties) {
    Settings settings = new Settings(properties);
    if (client instanceof AuthenticatedWrapping
        && settings.optional(KmsProperties.AUTHENTICATED_WRAPPING) != null) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is set, and KMS client %s knows by itself",
              KmsProperties.AUTHENTICATED_WRAPPING, client.getClass().getName()),
          "Leave it out: it is for KMS clients of your own.");
    }

    return settings.flag(KmsProperties.AUTHENTICATED_WRAPPING, false);
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
        String.format(
            "Set spark.sql.catalog.<name>.%s to one of %s, or kms-impl to a KeyManagementClient"
                + " class.",
            KmsProperties.KMS_TYPE, String.join(", ", TYPES.keySet())));
  }

  private static Type type(Map<String, String> properties) {
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
      return new Type(impl, null);
    }

    if (type == null) {
      throw notConfigured();
    }

    Type known = TYPES.get(type.trim().toLowerCase(Locale.ROOT));
    if (known == null) {
      throw new InvalidConfigurationException(
          String.format("Unknown KMS type '%s' (%s)", type, KmsProperties.KMS_TYPE),
          String.format(
              "Use one of %s, or set %s to a KeyManagementClient class.",
              String.join(", ", TYPES.keySet()), KmsProperties.KMS_IMPL));
    }

    return known;
  }

  /**
   * The error for a library whose class is not on the class path, or that is there in a version
   * that does not fit: a method that it lacks, say.
   */
  static InvalidConfigurationException missingLibrary(String implementation, LinkageError error) {
    boolean missing = error instanceof NoClassDefFoundError;
    String version = missing ? "" : " and take other versions of it off the class path";
    return new InvalidConfigurationException(
        missing
            ? String.format(
                "KMS client %s needs a library that is not on the class path: %s",
                implementation, error.getMessage())
            : String.format(
                "KMS client %s finds a library in a version that does not fit: %s",
                implementation, error),
        TYPES.values().stream()
            .filter(type -> type.implementation().equals(implementation))
            .map(Type::coordinate)
            .filter(Objects::nonNull)
            .findAny()
            .map(
                found ->
                    String.format(
                        "Add %s to spark.jars.packages, or its jar to spark.jars%s.",
                        found, version))
            .orElse("Add the library's jar to spark.jars or spark.jars.packages" + version + "."),
        error);
  }

  /** The error of the class loader or linker among a failure's causes; null when there is none. */
  static LinkageError linkageError(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof LinkageError found) {
        return found;
      }
    }

    return null;
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
