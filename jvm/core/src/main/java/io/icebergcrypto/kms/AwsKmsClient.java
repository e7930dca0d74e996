package io.icebergcrypto.kms;

/**
 * Master keys in AWS KMS. A key id is anything that KMS accepts as one: a key's id or ARN, {@code
 * alias/NAME} or an alias's ARN.
 *
 * <p>Takes the properties of Iceberg's own AwsKeyManagementClient. Each of the two unwraps what the
 * other wrapped, as long as no encryption context is set. It needs the permissions kms:Encrypt and
 * kms:Decrypt and no others: keys are made here, not by GenerateDataKey.
 *
 * <p>Credentials come from the SDK's provider chain, or from the class that {@code
 * client.credentials-provider} names, separately in each JVM: only the properties travel, and a
 * property that would hold a secret is refused.
 */
public final class AwsKmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;
}
