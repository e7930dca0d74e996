package io.icebergcrypto.kms;

/**
 * Master keys in Azure Key Vault and Managed HSM.
 *
 * <p>A wrapped key is exactly what the vault's wrapkey gives, as in Iceberg's own
 * AzureKeyManagementClient: each of the two reads what the other wrote. Unlike with that client, a
 * rotation of the master key leaves old tables readable. With {@code
 * encryption.kms.azure.store-key-version} the version is stored with the wrapped key, which then
 * unwraps in one call and which only this client reads. Both forms are read regardless of the
 * setting.
 */
public final class AzureKmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;
}
