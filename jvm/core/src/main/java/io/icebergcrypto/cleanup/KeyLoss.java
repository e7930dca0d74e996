package io.icebergcrypto.cleanup;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;

/** Tells a lost master key from other reasons why a table cannot be read. */
final class KeyLoss {
  private KeyLoss() {}

  /**
   * Whether no login, grant or corrected setting would give the key: the KMS has none of that name,
   * another key has its name, or no KMS is configured. A KMS that answers with wrong bytes may give
   * the right ones tomorrow.
   */
  static boolean causes(IcebergCryptoException e, boolean hasKms) {
    return e instanceof KeyNotFoundException
        || e instanceof BadWrappedKeyException refused && !refused.answered()
        || !hasKms && e instanceof InvalidConfigurationException;
  }

  /** Whether a list or manifest cannot be read with any key: see {@link ManifestReads}. */
  static boolean isOfStorage(IcebergCryptoException e) {
    return e.getClass() == IcebergCryptoException.class;
  }

  /** Whether bytes were changed. A KEK that another key of the same name wrapped is a lost key. */
  static boolean isTampering(IcebergCryptoException e) {
    return e instanceof TamperedException && !(e instanceof BadWrappedKeyException);
  }
}
