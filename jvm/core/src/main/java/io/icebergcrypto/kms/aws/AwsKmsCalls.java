package io.icebergcrypto.kms.aws;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.call.KmsCaller;
import io.icebergcrypto.kms.config.SecretSource;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.iceberg.aws.AwsClientFactories;
import org.apache.iceberg.aws.AwsClientProperties;
import org.apache.iceberg.aws.AwsProperties;
import org.apache.iceberg.aws.HttpClientProperties;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.core.exception.SdkServiceException;
import software.amazon.awssdk.profiles.ProfileFileLocation;
import software.amazon.awssdk.retries.StandardRetryStrategy;
import software.amazon.awssdk.retries.api.BackoffStrategy;
import software.amazon.awssdk.services.kms.KmsClient;
import software.amazon.awssdk.services.kms.KmsServiceClientConfiguration;
import software.amazon.awssdk.services.kms.model.DecryptRequest;
import software.amazon.awssdk.services.kms.model.EncryptRequest;
import software.amazon.awssdk.services.kms.model.EncryptionAlgorithmSpec;

/**
 * AWS KMS's Encrypt and Decrypt, by the AWS SDK. The one class of ours, with its errors, that needs
 * the SDK on the class path.
 */
public final class AwsKmsCalls implements AutoCloseable {
  private final String name;
  private final KmsClient kms;
  private final EncryptionAlgorithmSpec algorithm;
  private final AwsKmsSettings settings;
  private final Duration timeout;

  public AwsKmsCalls(AwsKmsSettings settings) {
    this.name = settings.kms();
    this.algorithm = requireAlgorithm(settings.algorithm());
    this.settings = settings;
    this.timeout = Duration.ofMillis(settings.timeoutMs());
    this.kms = settings.hasFactory() ? factorys(settings) : ours(settings);
  }

  /**
   * The algorithm of this name.
   *
   * @throws InvalidConfigurationException when KMS has none
   */
  public static EncryptionAlgorithmSpec requireAlgorithm(String name) {
    EncryptionAlgorithmSpec known = EncryptionAlgorithmSpec.fromValue(name);
    if (known == EncryptionAlgorithmSpec.UNKNOWN_TO_SDK_VERSION) {
      throw new InvalidConfigurationException(
          String.format(
              "Property %s is not an algorithm of AWS KMS: '%s'", AwsKmsSettings.ALGORITHM, name),
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
   * @throws InvalidConfigurationException when others than its owner may write one of the files
   */
  public static void requireUnwritableProfiles() {
    requireUnwritable(ProfileFileLocation.configurationFilePath(), "AWS_CONFIG_FILE");
    requireUnwritable(ProfileFileLocation.credentialsFilePath(), "AWS_SHARED_CREDENTIALS_FILE");
  }

  /** Not of /dev/null, by which some name no file at all. */
  private static void requireUnwritable(Path file, String variable) {
    if (Files.isRegularFile(file)) {
      SecretSource.requireUnwritable(file, variable + " or the AWS SDK");
    }
  }

  public ByteBuffer encrypt(ByteBuffer key, String keyId) {
    EncryptRequest request =
        EncryptRequest.builder()
            .keyId(keyId)
            .encryptionAlgorithm(algorithm)
            .encryptionContext(settings.contextOfCall())
            .plaintext(SdkBytes.fromByteBuffer(key))
            .overrideConfiguration(limits())
            .build();
    return present(kms.encrypt(request).ciphertextBlob(), keyId);
  }

  public ByteBuffer decrypt(ByteBuffer wrappedKey, String keyId) {
    DecryptRequest request =
        DecryptRequest.builder()
            .keyId(keyId)
            .encryptionAlgorithm(algorithm)
            .encryptionContext(settings.contextOfCall())
            .ciphertextBlob(SdkBytes.fromByteBuffer(wrappedKey))
            .overrideConfiguration(limits())
            .build();
    return present(kms.decrypt(request).plaintext(), keyId);
  }

  /**
   * The time-out of one call, and what CloudTrail says of the caller beside the SDK's own words.
   */
  private AwsRequestOverrideConfiguration limits() {
    String application = KmsCaller.application();
    AwsRequestOverrideConfiguration.Builder builder =
        AwsRequestOverrideConfiguration.builder().apiCallTimeout(timeout);
    builder.addApiName(
        api ->
            api.name(KmsCaller.PROGRAM)
                .version(Objects.requireNonNullElse(application, "unknown")));
    return builder.build();
  }

  private ByteBuffer present(SdkBytes bytes, String keyId) {
    if (bytes == null) {
      throw new InvalidConfigurationException(
          String.format("%s answered for key '%s', but not as AWS KMS does", name, keyId),
          "Check " + AwsKmsSettings.ENDPOINT + " and any proxy before it.");
    }

    return bytes.asByteBuffer();
  }

  @Override
  public void close() {
    kms.close();
  }

  /** As Iceberg's default factory makes it, but for retries: those are the decorator's. */
  private static KmsClient ours(AwsKmsSettings settings) {
    AwsClientProperties client = new AwsClientProperties(settings.properties());
    HttpClientProperties http = new HttpClientProperties(settings.properties());
    AwsProperties aws = new AwsProperties(settings.properties());
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
   * anew, at once. Every other failure is the caller's.
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
  private static KmsClient factorys(AwsKmsSettings settings) {
    KmsClient made = AwsClientFactories.from(settings.properties()).kms();
    KmsServiceClientConfiguration actual = made.serviceClientConfiguration();
    URI endpoint = actual.endpointOverride().orElse(null);
    if (settings.endpoint() != null && !URI.create(settings.endpoint()).equals(endpoint)) {
      made.close();
      throw ignored(settings, "endpoint " + settings.endpoint(), endpoint, AwsKmsSettings.ENDPOINT);
    }

    String region = actual.region() == null ? null : actual.region().id();
    if (settings.region() != null && !settings.region().equals(region)) {
      made.close();
      throw ignored(settings, "region " + settings.region(), region, AwsKmsSettings.REGION);
    }

    return made;
  }

  private static InvalidConfigurationException ignored(
      AwsKmsSettings settings, String wanted, Object actual, String property) {
    return new InvalidConfigurationException(
        String.format(
            "%s=%s makes a client for KMS with %s, and the properties ask for %s",
            AwsKmsSettings.FACTORY,
            settings.properties().get(AwsKmsSettings.FACTORY),
            Objects.requireNonNullElse(actual, "no such setting"),
            wanted),
        "Leave "
            + property
            + " (or Iceberg's name for it) out, or use a factory that takes it: Iceberg's"
            + " AssumeRoleAwsClientFactory takes client.assume-role.region and no endpoint.");
  }
}
