package io.icebergcrypto.io.cipher;

import com.amazon.corretto.crypto.provider.AmazonCorrettoCryptoProvider;
import java.security.Provider;
import java.util.Set;

/**
 * One cipher of Amazon Corretto Crypto Provider, {@link AesGcm#NAME}, and nothing else of it:
 * hashes, signatures, random numbers and keystores stay with the providers that have been chosen
 * for them. Java takes the cipher itself for one of that provider.
 *
 * <p>Only this class names classes of the provider, which may be missing.
 */
final class CorrettoCipher extends Provider {
  static final String NAME = "IcebergCryptoACCP";
  private static final long serialVersionUID = 1L;

  private CorrettoCipher() {
    super(NAME, "1", AesGcm.NAME + " of " + AmazonCorrettoCryptoProvider.PROVIDER_NAME);
  }

  /**
   * Loads the provider's library, and waits for its tests of itself.
   *
   * @throws RuntimeException when the library cannot be loaded, or a test fails
   * @throws LinkageError when the jar is incomplete
   */
  static Provider healthy() {
    AmazonCorrettoCryptoProvider.INSTANCE.assertHealthy();
    return new CorrettoCipher();
  }

  @Override
  public Service getService(String type, String algorithm) {
    return type.equals("Cipher") && algorithm.equalsIgnoreCase(AesGcm.NAME)
        ? AmazonCorrettoCryptoProvider.INSTANCE.getService(type, algorithm)
        : null;
  }

  @Override
  public Set<Service> getServices() {
    return Set.of(getService("Cipher", AesGcm.NAME));
  }
}
