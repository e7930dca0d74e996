package io.icebergcrypto.kms.config;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;

/**
 * Decides whether a KMS client may be made of some settings. A client uses the credentials of its
 * process; where users other than the process's owner give settings, as the users of a server of
 * SQL do, theirs could send these credentials, and new keys, to an address of their own. Found by
 * the service loader: an engine knows where settings come from.
 */
public interface SettingsGuard {
  /** Those on the class path: what one refuses, is refused. */
  List<SettingsGuard> ALL = Services.of(SettingsGuard.class);

  /**
   * Checks the properties of a client that is about to be made.
   *
   * @throws InvalidConfigurationException when they are not those of the process's owner
   */
  void check(Map<String, String> properties);

  /**
   * Checks settings with which a program of tables, such as Delta, is about to write a file: it may
   * have added what is stored of the table, which others can change.
   *
   * @param program its name, for errors
   * @param settings all that decide on the file's keys
   * @param decides whether a setting of this name is one of them
   * @throws InvalidConfigurationException when they are not those of the session that writes
   */
  void checkStored(String program, Map<String, String> settings, Predicate<String> decides);

  /**
   * Tells what this thread starts elsewhere which settings decide on the keys of a session's files,
   * for {@link #checkStored}.
   */
  void tell(Map<String, String> settings);
}
