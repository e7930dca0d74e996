package io.icebergcrypto.kms;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.call.Resilience;
import io.icebergcrypto.kms.config.KmsProperties;
import io.icebergcrypto.kms.config.PropertyReader;
import io.icebergcrypto.kms.config.SettingsGuard;
import io.icebergcrypto.kms.http.HeaderValues;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import org.apache.iceberg.common.DynConstructors;
import org.apache.iceberg.encryption.KeyManagementClient;

/** Makes the KMS client that {@code encryption.kms-type} or {@code encryption.kms-impl} names. */
public final class KmsClients {
  private static final ConcurrentMap<Map<String, String>, CachingKmsClient> SHARED =
      new ConcurrentHashMap<>();

  private KmsClients() {}

  /**
   * The client of all in this JVM who have the same KMS settings, and no catalog. It stays: a login
   * and keys that were not used for a while are dropped, and obtained again by the next call.
   *
   * @param properties named like a catalog's, such as those of a Hadoop configuration below {@link
   *     KmsProperties#HADOOP_PREFIX}; those that say nothing of the KMS do not count
   * @throws InvalidConfigurationException when no KMS is named, two are, or its properties are
   *     wrong
   * @throws IcebergCryptoException when the client does not start
   */
  public static CachingKmsClient shared(Map<String, String> properties) {
    return SHARED.computeIfAbsent(ofKms(properties), KmsClients::create);
  }

  /** Those of some properties that say which KMS, and how it is used. None of them is a secret. */
  public static Map<String, String> ofKms(Map<String, String> properties) {
    return properties.entrySet().stream()
        .filter(property -> KmsProperties.isOfKms(property.getKey()))
        .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, Map.Entry::getValue));
  }

  /** How long keys are kept in memory, in milliseconds; 0: they are not. */
  public static long cacheTtlMs(Map<String, String> properties) {
    return new PropertyReader(properties)
        .number(
            KmsProperties.CACHE_TTL_MS,
            KmsProperties.CACHE_TTL_MS_DEFAULT,
            0,
            "a number of milliseconds, 0 or more",
            "3600000 for an hour, or 0 to turn the cache off");
  }

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
    long ttlMs = cacheTtlMs(properties);
    Resilience.Limits limits = Resilience.Limits.of(properties);
    String application = CallContext.application(properties);
    String implementation = implementation(properties);
    if (KmsType.ofClient(implementation).isEmpty()) {
      // ours ask by themselves, others do not
      SettingsGuard.ALL.forEach(guard -> guard.check(properties));
    }

    try {
      KeyManagementClient client = newClient(implementation);
      boolean authenticated = authenticatedWrapping(client, properties);
      client.initialize(properties);
      return new CachingKmsClient(client, ttlMs, limits, authenticated, application)
          .closedAsGarbage();
    } catch (LinkageError e) {
      throw KmsType.missingLibrary(implementation, e);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      if (HeaderValues.areQuotedBy(e)) {
        throw HeaderValues.refused("KMS client " + implementation);
      }

      throw new IcebergCryptoException(
          String.format("KMS client %s did not start: %s", implementation, e.getMessage()),
          "Check the catalog's encryption.kms.* properties and that the KMS can be reached.",
          e);
    }
  }

  /** What the user says about the client's wrapping, for a client that does not say it itself. */
  private static boolean authenticatedWrapping(
      KeyManagementClient client, Map<String, String> properties) {
    PropertyReader reader = new PropertyReader(properties);
    if (client instanceof AuthenticatedWrapping
        && reader.optional(KmsProperties.AUTHENTICATED_WRAPPING) != null) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is set, but KMS client %s already decides this",
              KmsProperties.AUTHENTICATED_WRAPPING, client.getClass().getName()),
          "Leave it out: it is for your own KMS clients.");
    }

    return reader.flag(KmsProperties.AUTHENTICATED_WRAPPING, false);
  }

  /** Whether the catalog names a KMS at all. */
  public static boolean isConfigured(Map<String, String> properties) {
    return properties.get(KmsProperties.KMS_TYPE) != null
        || properties.get(KmsProperties.KMS_IMPL) != null;
  }

  /** The error of a catalog that needs a KMS and does not name one. */
  public static IcebergCryptoException notConfigured() {
    return new InvalidConfigurationException(
        String.format(
            "No KMS is configured: neither %s nor %s is set",
            KmsProperties.KMS_TYPE, KmsProperties.KMS_IMPL),
        String.format(
            "Set spark.sql.catalog.<name>.%s to one of %s, or kms-impl to a KeyManagementClient"
                + " class. Without a catalog it is spark.hadoop.%s%s.",
            KmsProperties.KMS_TYPE,
            KmsType.names(),
            KmsProperties.HADOOP_PREFIX,
            KmsProperties.KMS_TYPE));
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

    return KmsType.of(type)
        .map(KmsType::implementation)
        .orElseThrow(
            () ->
                new InvalidConfigurationException(
                    String.format("Unknown KMS type '%s' (%s)", type, KmsProperties.KMS_TYPE),
                    String.format(
                        "Use one of %s, or set %s to a KeyManagementClient class.",
                        KmsType.names(), KmsProperties.KMS_IMPL)));
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
