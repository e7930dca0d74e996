package io.icebergcrypto.audit;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * What an examination of one table found to mend.
 *
 * @param harm what it means
 * @param problem what is wrong; names the table
 * @param hint how to mend it
 */
public record Finding(Harm harm, String problem, String hint) {
  /** What a finding means, the worst first. */
  public enum Harm {
    /** The table has a key id, and plaintext files all the same: they can be read now. */
    PLAINTEXT,
    /** Its key id was removed: the next write of another client is plaintext. */
    KEY_ID_REMOVED,
    /** Its metadata, or what it names, is not what was committed. */
    TAMPERED,
    /** It was made under a key id, without a KEK: a client without encryption writes plaintext. */
    NO_KEK,
    /** It has no key id, in a catalog that takes encrypted tables only. */
    NOT_ENCRYPTED,
    /** It cannot be read: its metadata, or its manifest list, is gone. */
    UNREADABLE,
    /** The key metadata of its current manifest list gives no length: queries refuse it. */
    NO_LENGTH,
    /** Its master key cannot be used, or not by this catalog. */
    KEY_UNUSABLE,
    /** Whoever writes to its storage can change its metadata unnoticed. */
    UNAUTHENTICATED,
    /** It could not be examined, so that nothing is known of it. */
    UNCHECKED;

    /** The name for people: {@code key id removed}. */
    public String label() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  /** The names and values for JSON. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("harm", harm.label());
    values.put("problem", problem);
    values.put("hint", hint);
    return values;
  }
}
