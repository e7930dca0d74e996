package io.icebergcrypto.kms;

import java.util.Map;

/**
 * Master keys in a PKCS12 file: AES keys of 128, 192 or 256 bits, one password for the file and its
 * entries. For laptops, tests and single hosts; anyone who has the file and the password has the
 * keys.
 *
 * <p>Keys are wrapped with AES-GCM (NIST SP 800-38D) and a random 96-bit nonce, so one version of a
 * master key may wrap 2^32 keys (section 8.3).
 *
 * <p>Configured by {@code encryption.kms.keystore.path} and one of {@code .password-env} (the name
 * of an environment variable) and {@code .password-file} (a file that holds the password). Both
 * files must be readable by their owner only, as ssh requires. Only these references travel to
 * executors. Also works as {@code encryption.kms-impl} under a stock catalog.
 */
public final class KeystoreKmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;

  /** Reads the keystore, too, so that a catalog without its password does not start. */
  @Override
  public void initialize(Map<String, String> properties) {
    super.initialize(properties);
    keys();
  }
}
