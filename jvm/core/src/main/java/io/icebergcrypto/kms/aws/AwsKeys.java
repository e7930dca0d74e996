package io.icebergcrypto.kms.aws;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.call.CallContext;
import io.icebergcrypto.kms.config.MasterKeys;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.http.Proxies;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.iceberg.aws.AwsClientFactories;
import org.apache.iceberg.aws.AwsClientProperties;
import org.apache.iceberg.aws.AwsProperties;
import org.apache.iceberg.aws.HttpClientProperties;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.exception.SdkServiceException;
import software.amazon.awssdk.profiles.ProfileFileLocation;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.retries.StandardRetryStrategy;
import software.amazon.awssdk.retries.api.BackoffStrategy;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.KmsServiceClientConfiguration;
import software.amazon.awssdk.services.kms.model.DecryptRequest;
import software.amazon.awssdk.services.kms.model.EncryptRequest;
import software.amazon.awssdk.services.kms.model.EncryptionAlgorithmSpec;

/**
 * The master keys of AWS KMS, by the AWS SDK. With {@link AwsErrors} the only class that needs the
 * SDK on the class path.
 */
final class AwsKeys implements MasterKeys {
  private final EncryptionAlgorithmSpec algorithm;
  private final AwsConfig config;
  private KmsClient client; // made by the first call, whose errors name the key

  AwsKeys(AwsConfig config) {
    this.algorithm = requireAlgorithm(config.algorithm());
    this.config = config;
  }

  /**
   * The algorithm of this name.
   *
   * @throws InvalidConfigurationException when KMS has none
   */
  static EncryptionAlgorithmSpec requireAlgorithm(String name) {
    EncryptionAlgorithmSpec known = EncryptionAlgorithmSpec.fromValue(name);
    if (known == EncryptionAlgorithmSpec.UNKNOWN_TO_SDK_VERSION) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is not an algorithm of AWS KMS: '%s'", AwsConfig.ALGORITHM, name),
          EncryptionAlgorithmSpec.knownValues().stream()
              .map(EncryptionAlgorithmSpec::toString)
              .sorted()
              .collect(
                  Collectors.joining(", ", "Use one of ", "; leave it out for a symmetric key.")));
    }

    return known;
  }

  /**
   * Refuses profiles that others may write: they choose the login, and programs that the SDK runs.
   *
   * @throws InvalidConfigurationException when users other than its owner may write one of the
   *     files
   */
  private static void requireUnwritableProfiles() {
    requireUnwritable(ProfileFileLocation.configurationFilePath(), "AWS_CONFIG_FILE");
    requireUnwritable(ProfileFileLocation.credentialsFilePath(), "AWS_SHARED_CREDENTIALS_FILE");
  }

  /** Not of /dev/null, by which some name no file at all. */
  private static void requireUnwritable(Path file, String variable) {
    if (Files.isRegularFile(file)) {
      SecretSource.requireUnwritable(file, variable + " or the AWS SDK");
    }
  }

  @Override
  public ByteBuffer wrap(byte[] key, String keyId) {
    return call(() -> encrypt(key, keyId), "wrap", keyId);
  }

  @Override
  public ByteBuffer unwrap(ByteBuffer wrapped, String keyId) {
    WrappedKey.refuseHeader(wrapped, "aws", keyId);
    return call(() -> decrypt(wrapped, keyId), "unwrap", keyId);
  }

  private ByteBuffer call(Supplier<ByteBuffer> operation, String what, String keyId) {
    SecretSource.requireUnwritable("AWS_WEB_IDENTITY_TOKEN_FILE");
    SecretSource.requireUnwritable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (!config.hasCredentialsProvider()) { // what that one reads is up to it
      requireUnwritableProfiles();
    }

    try {
      return operation.get();
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw new AwsErrors(config, region()).typed(e, what, keyId);
    }
  }

  private ByteBuffer encrypt(byte[] key, String keyId) {
    EncryptRequest request =
        EncryptRequest.builder()
            .keyId(keyId)
            .encryptionAlgorithm(algorithm)
            .encryptionContext(config.contextOfCall())
            .plaintext(SdkBytes.fromByteArray(key))
            .overrideConfiguration(limits())
            .build();
    return present(kms().encrypt(request).ciphertextBlob(), keyId);
  }

  private ByteBuffer decrypt(ByteBuffer wrappedKey, String keyId) {
    DecryptRequest request =
        DecryptRequest.builder()
            .keyId(keyId)
            .encryptionAlgorithm(algorithm)
            .encryptionContext(config.contextOfCall())
            .ciphertextBlob(SdkBytes.fromByteBuffer(wrappedKey))
            .overrideConfiguration(limits())
            .build();
    return present(kms().decrypt(request).plaintext(), keyId);
  }

  /**
   * The time-out of one call, and what CloudTrail shows of the caller besides the SDK's own name.
   */
  private AwsRequestOverrideConfiguration limits() {
    String application = CallContext.application();
    AwsRequestOverrideConfiguration.Builder builder =
        AwsRequestOverrideConfiguration.builder().apiCallTimeout(config.timeLimit().duration());
    builder.addApiName(
        api ->
            api.name(CallContext.PROGRAM)
                .version(Objects.requireNonNullElse(application, "unknown")));
    return builder.build();
  }

  private ByteBuffer present(SdkBytes bytes, String keyId) {
    if (bytes == null) {
      throw new InvalidConfigurationException(
          String.format("%s answered for key '%s', but not as AWS KMS does", config, keyId),
          "Check " + AwsConfig.ENDPOINT + " and any proxy before it.");
    }

    return bytes.asByteBuffer();
  }

  /** The region that is asked, which may come from a variable, a profile or a factory. */
  private synchronized String region() {
    return client == null ? config.region() : regionOf(client);
  }

  private static String regionOf(KmsClient client) {
    Region region = client.serviceClientConfiguration().region();
    return region == null ? null : region.id();
  }

  private synchronized KmsClient kms() {
    if (client == null) {
      this.client = config.hasFactory() ? byUsersFactory(config) : byDefault(config);
    }

    return client;
  }

  @Override
  public synchronized void close() {
    if (client != null) {
      client.close();
    }
  }

  /**
   * As Iceberg's default factory makes it, except for retries, which are CachingKmsClient's, and
   * for the proxy: the SDK's own is that of {@code http.proxyHost}, or of a variable.
   */
  private static KmsClient byDefault(AwsConfig config) {
    if (config.namesProxy()) {
      return made(config.properties());
    }

    KmsClient direct = made(config.throughProxy(null));
    Optional<String> proxy;
    try {
      proxy = Proxies.before(address(direct)).map(Proxies::text);
    } catch (RuntimeException e) {
      direct.close();
      throw e;
    }

    if (proxy.isEmpty()) {
      return direct;
    }

    direct.close();
    return made(config.throughProxy(proxy.get()));
  }

  private static URI address(KmsClient client) {
    KmsServiceClientConfiguration actual = client.serviceClientConfiguration();
    return actual
        .endpointOverride()
        .orElseGet(
            () ->
                URI.create("https://" + KmsClient.serviceMetadata().endpointFor(actual.region())));
  }

  private static KmsClient made(Map<String, String> properties) {
    AwsClientProperties client = new AwsClientProperties(properties);
    HttpClientProperties http = new HttpClientProperties(properties);
    AwsProperties aws = new AwsProperties(properties);
    return KmsClient.builder()
        .applyMutation(client::applyClientRegionConfiguration)
        .applyMutation(http::applyHttpClientConfigurations)
        .applyMutation(aws::applyKmsEndpointConfigurations)
        .applyMutation(client::applyClientCredentialConfigurations)
        .overrideConfiguration(configuration -> configuration.retryStrategy(onlyWithTheRightTime()))
        .build();
  }

  /**
   * When KMS says that this host's clock is wrong, the SDK takes the time from the answer and signs
   * again, at once. Every other failure is the caller's.
   */
  private static StandardRetryStrategy onlyWithTheRightTime() {
    return StandardRetryStrategy.builder()
        .maxAttempts(2)
        .backoffStrategy(BackoffStrategy.retryImmediately())
        .retryOnException(
            error -> error instanceof SdkServiceException answer && answer.isClockSkewException())
        .useClientDefaults(false)
        .build();
  }

  /** The user's factory; its client must be one for the KMS that the properties name. */
  private static KmsClient byUsersFactory(AwsConfig config) {
    KmsClient made = AwsClientFactories.from(config.properties()).kms();
    KmsServiceClientConfiguration actual = made.serviceClientConfiguration();
    URI endpoint = actual.endpointOverride().orElse(null);
    if (config.endpoint() != null && !URI.create(config.endpoint()).equals(endpoint)) {
      made.close();
      throw ignored(config, "endpoint " + config.endpoint(), endpoint, AwsConfig.ENDPOINT);
    }

    String region = regionOf(made);
    if (config.region() != null && !config.region().equals(region)) {
      made.close();
      throw ignored(config, "region " + config.region(), region, AwsConfig.REGION);
    }

    return made;
  }

  private static InvalidConfigurationException ignored(
      AwsConfig config, String wanted, Object actual, String property) {
    return new InvalidConfigurationException(
        String.format(
            "%s=%s creates a KMS client with %s, but the properties ask for %s",
            AwsConfig.FACTORY,
            config.properties().get(AwsConfig.FACTORY),
            Objects.requireNonNullElse(actual, "no such setting"),
            wanted),
        "Leave "
            + property
            + " (or Iceberg's name for it) out, or use a factory that takes it: Iceberg's"
            + " AssumeRoleAwsClientFactory takes client.assume-role.region and no endpoint.");
  }
}
