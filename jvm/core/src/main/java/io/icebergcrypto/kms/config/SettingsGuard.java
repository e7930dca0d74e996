package io.icebergcrypto.kms.config;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import java.util.Map;

/**
 * Decides whether a KMS client may be made of some settings. A client uses the credentials of its
 * process; where users other than the process's owner give settings, as the users of a server of
 * SQL do, theirs could send these credentials, and new keys, to an address of their own. Found by
 * the service loader: an engine knows where settings come from.
 */
public interface SettingsGuard {
  /**
   * Checks the properties of a client that is about to be made.
   *
   * @throws InvalidConfigurationException when they are not those of the process's owner
   */
  void check(Map<String, String> properties);

  /**
   * Asks all guards.
   *
   * @throws InvalidConfigurationException when one refuses
   */
  static void checkAll(Map<String, String> properties) {
    Guards.ALL.forEach(guard -> guard.check(properties));
  }

  /** Those on the class path. */
  final class Guards {
    private static final List<SettingsGuard> ALL = Services.of(SettingsGuard.class);

    private Guards() {}
  }
}
