package io.icebergcrypto.kms;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.kms.aws.AwsKmsCalls;
import io.icebergcrypto.kms.aws.AwsKmsErrors;
import io.icebergcrypto.kms.aws.AwsKmsSettings;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.config.SecretSource;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.function.Function;
import org.apache.iceberg.encryption.KeyManagementClient;

/**
 * Master keys in AWS KMS. A key id is whatever KMS takes for one: a key's id or ARN, {@code
 * alias/NAME} or an alias's ARN.
 *
 * <p>Takes the properties of Iceberg's own AwsKeyManagementClient, and its wrapped keys are that
 * client's, both ways, as long as no encryption context is set. It needs the permissions
 * kms:Encrypt and kms:Decrypt and no others: keys are made here, not by GenerateDataKey.
 *
 * <p>Credentials come from the SDK's provider chain, or from the class that {@code
 * client.credentials-provider} names, anew in each JVM: what travels is the properties, and a
 * property that would hold a secret is refused.
 */
public final class AwsKmsClient
    implements KeyManagementClient, AuthenticatedWrapping, TableBinding {
  private static final long serialVersionUID = 1L;

  /** In {@code encryption.kms-type}. */
  static final String TYPE = "aws";

  private AwsKmsSettings settings;
  private transient AwsKmsCalls calls;

  /** One that {@link #initialize} must prepare. */
  public AwsKmsClient() {}

  /**
   * Reads the properties; asks nobody.
   *
   * @throws InvalidConfigurationException when a property is wrong, unknown or holds a secret
   */
  @Override
  public void initialize(Map<String, String> properties) {
    AwsKmsSettings read = AwsKmsSettings.of(properties);
    AwsKmsCalls.requireAlgorithm(read.algorithm()); // and that the SDK is on the class path
    this.settings = read;
  }

  @Override
  public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
    return call(kms -> kms.encrypt(key.duplicate(), wrappingKeyId), "wrap", wrappingKeyId);
  }

  @Override
  public ByteBuffer unwrapKey(ByteBuffer wrappedKey, String wrappingKeyId) {
    WrappedKey.refuseHeader(wrappedKey, TYPE, wrappingKeyId);
    return call(kms -> kms.decrypt(wrappedKey.duplicate(), wrappingKeyId), "unwrap", wrappingKeyId);
  }

  /** Whether the key is symmetric: with RSA and SM2 anybody with the public half wraps. */
  @Override
  public boolean authenticatesWrapping(String wrappingKeyId) {
    return settings.algorithm().equals(AwsKmsSettings.SYMMETRIC);
  }

  /** Whether the table's UUID is in the encryption context. */
  @Override
  public boolean bindsTable() {
    return settings.bindsTable();
  }

  /** Ends the SDK's client. Another call makes a new one. */
  @Override
  public synchronized void close() {
    if (calls != null) {
      calls.close();
      this.calls = null;
    }
  }

  @Override
  public String toString() {
    return settings == null ? "AWS KMS" : settings.kms();
  }

  private ByteBuffer call(
      Function<AwsKmsCalls, ByteBuffer> operation, String what, String wrappingKeyId) {
    SecretSource.requireUnwritable("AWS_WEB_IDENTITY_TOKEN_FILE");
    SecretSource.requireUnwritable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    if (!settings.hasCredentialsProvider()) { // whatever that one reads is its own business
      AwsKmsCalls.requireUnwritableProfiles();
    }

    try {
      return operation.apply(calls());
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      throw new AwsKmsErrors(settings).typed(e, what, wrappingKeyId);
    }
  }

  private synchronized AwsKmsCalls calls() {
    if (calls == null) {
      this.calls = new AwsKmsCalls(settings);
    }

    return calls;
  }
}
