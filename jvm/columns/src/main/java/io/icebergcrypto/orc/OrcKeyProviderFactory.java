package io.icebergcrypto.orc;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Locale;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.orc.impl.KeyProvider;

/**
 * Gives ORC our key provider where {@code orc.key.provider} names it. ORC finds it as a service.
 */
public final class OrcKeyProviderFactory implements KeyProvider.Factory {
  /** Java makes one by this constructor. */
  public OrcKeyProviderFactory() {}

  /**
   * Makes a provider, which ORC keeps by its name for all of a JVM.
   *
   * @param random not used: Java's own secure random numbers are
   * @return null when another one is named
   * @throws InvalidConfigurationException when ours is misspelt, or its settings are wrong
   */
  @Override
  public KeyProvider create(String kind, Configuration hadoop, Random random) {
    if (OrcKeyProvider.isNamedBy(kind)) {
      return new OrcKeyProvider(hadoop);
    }

    if (kind.toLowerCase(Locale.ROOT).startsWith("iceberg")) {
      throw new InvalidConfigurationException(
          String.format("%s=%s is not a key provider", OrcSettings.PROVIDER, kind),
          "Did you mean " + OrcKeyProvider.NAME + "? Case matters.");
    }

    return null;
  }
}
