package io.icebergcrypto.config;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.TableMetadata;

/**
 * The master keys that tables of a catalog may name, and that may sign reports on them: the catalog
 * property {@code encryption.allowed-key-ids}. Otherwise, anyone who can write a table's metadata
 * could have data encrypted with a key of their own.
 *
 * <p>The list is separated by commas; white space around an entry does not count. An entry is a key
 * id, in which {@code *} stands for any characters or none (slashes, colons and dots, too) and
 * {@code ?} for exactly one. A backslash takes the meaning from the {@code *}, {@code ?}, comma or
 * backslash after it. Case counts. Names are compared, not keys: of a key with two names each name
 * must be in the list.
 */
public final class AllowedKeyIds implements Serializable {
  private static final long serialVersionUID = 1L;

  /** Any key. */
  static final AllowedKeyIds ALL = new AllowedKeyIds(null, List.of());

  private static final String USE_OTHERS =
      "Use one of these, or ask whoever decides about the list to add this one.";

  private final String list;
  private final List<Pattern> patterns;

  private AllowedKeyIds(String list, List<Pattern> patterns) {
    this.list = list;
    this.patterns = patterns;
  }

  /**
   * Reads the property.
   *
   * @param list null: any key is allowed
   * @throws InvalidConfigurationException when it has no entry, or one that is empty or cannot be
   *     understood
   */
  public static AllowedKeyIds parse(String list) {
    return list == null ? ALL : new AllowedKeyIds(list, patterns(list));
  }

  private static List<Pattern> patterns(String list) {
    List<Pattern> patterns = new ArrayList<>();
    StringBuilder entry = new StringBuilder();
    for (int i = 0; i < list.length(); i++) {
      char c = list.charAt(i);
      if (c == ',') {
        patterns.add(pattern(entry.toString(), list));
        entry.setLength(0);
      } else {
        entry.append(c);
        if (c == '\\' && i + 1 < list.length()) {
          entry.append(list.charAt(++i));
        }
      }
    }

    patterns.add(pattern(entry.toString(), list));
    return patterns;
  }

  /** Never goes back before the last *: key ids may be anyone's, and must not cost much. */
  private static Pattern pattern(String entry, String list) {
    int[] characters = entry.strip().codePoints().toArray();
    if (characters.length == 0) {
      throw wrong(list, "has an empty entry");
    }

    StringBuilder regex = new StringBuilder();
    int afterStar = -1;
    for (int i = 0; i < characters.length; i++) {
      int c = characters[i];
      if (c == '*') {
        if (afterStar >= 0) {
          regex.insert(afterStar, "(?>.*?").append(')');
        }

        afterStar = regex.length();
      } else if (c == '?') {
        regex.append('.');
      } else {
        if (c == '\\' && (++i == characters.length || "*?,\\".indexOf(characters[i]) < 0)) {
          throw wrong(list, "has a backslash before something other than * ? , or \\");
        }

        regex.append(Pattern.quote(Character.toString(characters[i])));
      }
    }

    if (afterStar >= 0) {
      regex.insert(afterStar, ".*");
    }

    return Pattern.compile(regex.toString(), Pattern.DOTALL);
  }

  private static InvalidConfigurationException wrong(String list, String problem) {
    return new InvalidConfigurationException(
        String.format("Property %s %s: '%s'", EncryptionProperties.ALLOWED_KEY_IDS, problem, list),
        "Give the key ids that tables may have, with commas between them, such as sales,hr-*; or"
            + " leave the property out, which allows every key.");
  }

  /** Whether the catalog limits the keys. */
  public boolean limited() {
    return list != null;
  }

  /** Whether tables may have this key id. */
  public boolean allows(String keyId) {
    return !limited() || patterns.stream().anyMatch(pattern -> pattern.matcher(keyId).matches());
  }

  /**
   * Checks the key id that a new table would get.
   *
   * @param keyId null: none
   * @throws AccessDeniedException when it is not allowed
   */
  public void checkNew(String keyId) {
    if (keyId != null && !allows(keyId)) {
      throw refused(keyId, USE_OTHERS);
    }
  }

  /**
   * Checks the master keys of a table that exists, its own and those of its KEKs, before the KMS is
   * asked for one.
   *
   * @param metadata null: there is no table
   * @throws AccessDeniedException when one is not allowed
   */
  public void check(String tableName, TableMetadata metadata) {
    String keyId = metadata == null ? null : EncryptionProperties.keyId(metadata.properties());
    if (keyId == null || !limited()) {
      return;
    }

    Stream.concat(Stream.of(keyId), Keks.masterKeyIds(metadata))
        .filter(id -> !allows(id))
        .findFirst()
        .ifPresent(
            id -> {
              throw refused(
                      id,
                      String.format(
                          "If the table was created with this key, add it where the catalog is"
                              + " configured. If not, the table's metadata was changed: find out"
                              + " who did it; %s shows which key wrapped its KEKs. Nothing was read"
                              + " or written.",
                          SqlNames.call("repair_table", tableName)))
                  .inTable(tableName);
            });
  }

  /**
   * Checks the master key of a KEK that an older metadata file may name, before the KMS is asked.
   *
   * @throws AccessDeniedException when it is not allowed
   */
  public void checkOlder(String keyId) {
    if (!allows(keyId)) {
      throw new AccessDeniedException(
          String.format(
              "a KEK of an older metadata file is under master key '%s', and the catalog allows"
                  + " only %s (%s)",
              keyId, list, EncryptionProperties.ALLOWED_KEY_IDS),
          "If the table had this key then, add it to the list for as long as you verify files of"
              + " that time. If not, the file was changed: find out who did it. The current"
              + " snapshot needs no such key.");
    }
  }

  /**
   * Checks the master key of a report's signature, before the KMS is asked for that key.
   *
   * @throws AccessDeniedException when it is not allowed
   */
  public void checkSigner(String keyId) {
    if (!allows(keyId)) {
      throw new AccessDeniedException(
          String.format(
              "A report is not signed with master key '%s': the catalog allows only %s (%s)",
              keyId, list, EncryptionProperties.ALLOWED_KEY_IDS),
          "Sign with one of these, or ask whoever decides about the list to add this one. To check"
              + " a report that an earlier list allowed, name its master key.");
    }
  }

  private AccessDeniedException refused(String keyId, String hint) {
    return new AccessDeniedException(
        String.format(
            "%s is '%s', and the catalog allows only %s (%s)",
            EncryptionProperties.KEY_ID, keyId, list, EncryptionProperties.ALLOWED_KEY_IDS),
        hint);
  }

  /** The refusal of a key id that a namespace or the catalog itself would give to new tables. */
  public AccessDeniedException refused(String keyId) {
    return refused(keyId, USE_OTHERS);
  }
}
