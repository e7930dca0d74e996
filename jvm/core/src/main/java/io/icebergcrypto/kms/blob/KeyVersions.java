package io.icebergcrypto.kms.blob;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Collection;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How a master key has versions where the store itself knows only names: PKCS12 files and PKCS#11
 * tokens. Version 1 of key {@code k} is the entry {@code k}, version 2 is {@code k.v2}, and so on.
 * The newest wraps; the header of a wrapped key says which one unwraps it.
 */
public final class KeyVersions {
  private static final Pattern LATER = Pattern.compile("(.+)\\.v([1-9][0-9]{0,8})", Pattern.DOTALL);

  private KeyVersions() {}

  /** The entry that holds a version of a key. */
  public static String entry(String keyId, int version) {
    return version == 1 ? keyId : keyId + ".v" + version;
  }

  /**
   * The newest version of a key among the entries of a store. Versions need not be without gaps: an
   * old one may have been destroyed.
   *
   * @return 0 if it has none
   */
  public static int newest(String keyId, Collection<String> entries) {
    int newest = 0;
    for (String entry : entries) {
      newest = Math.max(newest, version(keyId, entry));
    }

    return newest;
  }

  /** Whether a name can be a key's id: it is not the name of a later version. */
  public static boolean isKeyId(String name) {
    return !LATER.matcher(name).matches();
  }

  /**
   * Refuses a key id that names a version: a table would stay with that version for ever.
   *
   * @param kms the store, for the error
   * @throws InvalidConfigurationException when it does
   */
  public static void requireKeyId(String keyId, String kms) {
    Matcher later = LATER.matcher(keyId);
    if (later.matches()) {
      throw new InvalidConfigurationException(
          String.format(
              "Key id '%s' is the name that %s gives to version %s of key '%s'",
              keyId, kms, later.group(2), later.group(1)),
          String.format(
              "Use '%s' as encryption.key-id: its newest version wraps, and older ones unwrap.",
              later.group(1)));
    }
  }

  private static int version(String keyId, String entry) {
    if (entry.equals(keyId)) {
      return 1;
    }

    Matcher later = LATER.matcher(entry);
    if (later.matches() && later.group(1).equals(keyId)) {
      int version = Integer.parseInt(later.group(2));
      return version > 1 ? version : 0; // "k.v1" is not how version 1 is called
    }

    return 0;
  }
}
