package io.icebergcrypto.audit;

import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.iceberg.TableMetadata;

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
    /** It was encrypted in place, and its files of before are still there: they can be read now. */
    PLAINTEXT_LEFT,
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

  /**
   * That the plaintext of a table that was encrypted in place was not purged.
   *
   * @return null when it was, or there was none
   */
  public static Finding ofPlaintextLeft(String table, TableMetadata metadata) {
    String kept = metadata.properties().get(EncryptionProperties.PLAINTEXT_METADATA);
    return kept == null
        ? null
        : new Finding(
            Harm.PLAINTEXT_LEFT,
            String.format(
                "Table %s: encrypt_table encrypted it, and its plaintext from before is still in"
                    + " the storage: all files that %s reaches",
                table, kept),
            String.format(
                "Whoever reads the storage reads these rows. %s lists the files, and without"
                    + " dry_run deletes them: when nobody needs the table as it was then.",
                SqlNames.call("purge_plaintext", table, "dry_run => true")));
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
