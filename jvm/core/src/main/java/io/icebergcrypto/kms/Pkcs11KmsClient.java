package io.icebergcrypto.kms;

/**
 * Master keys in a hardware security module, by PKCS#11 and the JDK's SunPKCS11 provider: AES keys
 * that never leave the token.
 *
 * <p>Keys are wrapped with AES-GCM (CKM_AES_GCM, NIST SP 800-38D) on the token, under a random
 * 96-bit nonce that is made here (section 8.2.2), so one version of a master key may wrap 2^32 keys
 * (section 8.3).
 *
 * <p>Configured by {@code encryption.kms.pkcs11.library}, one of {@code .token-label} and {@code
 * .slot}, and one of {@code .pin-env} (the name of an environment variable) and {@code .pin-file}
 * (a file that holds the PIN). Only these references travel to executors. Also works as {@code
 * encryption.kms-impl} under a stock catalog.
 */
public final class Pkcs11KmsClient extends ConfiguredKmsClient {
  private static final long serialVersionUID = 1L;
}
