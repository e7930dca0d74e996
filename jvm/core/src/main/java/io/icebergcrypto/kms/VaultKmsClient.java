package io.icebergcrypto.kms;

/**
 * Master keys in HashiCorp Vault's transit engine, where they never leave Vault. The key id is the
 * name of a transit key.
 *
 * <p>A key is wrapped by {@code POST /v1/MOUNT/encrypt/NAME} with the key id as associated data, so
 * that it unwraps under that id only. The login needs {@code update} on {@code encrypt/NAME} and
 * {@code decrypt/NAME}; a missing key is never created, even if the login may do so.
 *
 * <p>Configured by the {@code encryption.kms.vault.*} properties. Only names of variables and paths
 * of files travel to executors; each of their JVMs logs in by itself. Also works as {@code
 * encryption.kms-impl} under a stock catalog.
 */
public final class VaultKmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;
}
