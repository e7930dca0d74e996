package io.icebergcrypto.kms;

/**
 * Master keys in Google Cloud KMS: symmetric keys (purpose {@code ENCRYPT_DECRYPT}), named by their
 * full resource name.
 *
 * <p>A wrapped key is the ciphertext that Cloud KMS answers, byte for byte, as Iceberg's own {@code
 * GcpKeyManagementClient} stores it: each of the two unwraps what the other wrapped. The exception
 * is the user's choice: with {@code encryption.kms.gcp.additional-authenticated-data=key-id} Cloud
 * KMS authenticates the key's name (without a version) as additional data, with {@code table-uuid}
 * the table's UUID, and Iceberg's client, which sends none, cannot unwrap.
 *
 * <p>Also works as {@code encryption.kms-impl} under a stock catalog.
 */
public final class GcpKmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;
}
