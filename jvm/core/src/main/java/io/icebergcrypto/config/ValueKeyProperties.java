package io.icebergcrypto.config;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.iceberg.catalog.TableIdentifier;

/**
 * The properties of value keys: which table of a catalog keeps them, and how they stand in its
 * properties. Each version of a key is a property of its own, so that two clients that make keys at
 * the same time, where a catalog merges their commits, take nothing from each other.
 */
public final class ValueKeyProperties {
  /** Catalog property: the table that keeps the value keys, such as db.keys. */
  public static final String TABLE = "encryption.value-key-table";

  private static final String TABLE_DEFAULT = "encryption.value_keys";

  /** Table property: what the name of each version's property begins with. */
  public static final String PREFIX = "encryption.value-key.";

  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}");

  private ValueKeyProperties() {}

  /**
   * The table that keeps the value keys of a catalog.
   *
   * @throws InvalidConfigurationException when the property has no namespace and name
   */
  public static TableIdentifier table(Map<String, String> catalogProperties) {
    String name = catalogProperties.getOrDefault(TABLE, TABLE_DEFAULT).strip();
    if (!name.matches("[^.]+(\\.[^.]+)+")) {
      throw new InvalidConfigurationException(
          String.format("Property %s is '%s'", TABLE, name),
          "Give a namespace and a name, as in db.keys, or leave the property out, for "
              + TABLE_DEFAULT
              + ".");
    }

    return TableIdentifier.parse(name);
  }

  /** The property of one version of a key. */
  public static String property(String name, int id) {
    return PREFIX + name + "." + version(id);
  }

  /** A version's id in hexadecimal digits. */
  public static String version(int id) {
    return String.format("%08x", id);
  }

  /**
   * The name of the key in a version's property.
   *
   * @throws IndexOutOfBoundsException when it has none
   */
  public static String name(String property) {
    return property.substring(PREFIX.length(), property.lastIndexOf('.'));
  }

  /**
   * The id in a version's property.
   *
   * @throws NumberFormatException when it has none
   */
  public static int id(String property) {
    return Integer.parseUnsignedInt(property.substring(property.lastIndexOf('.') + 1), 16);
  }

  /**
   * Checks the name of a value key.
   *
   * @throws InvalidConfigurationException when it has characters that a name may not have
   */
  public static void checkName(String name) {
    if (!NAME.matcher(name).matches()) {
      throw new InvalidConfigurationException(
          "not the name of a value key: '" + name + "'",
          "Use up to 100 letters, digits, dots, dashes and underscores, a letter or digit first.");
    }
  }

  /**
   * Refuses a commit that takes a value key from its table, as what it encrypted would be lost, and
   * one that writes something else in its place. What nobody can read may go.
   *
   * @throws NotSupportedException when a version of a key is gone
   * @throws InvalidConfigurationException when a property should be a value key and is not
   */
  public static void checkKept(
      String tableName, Map<String, String> before, Map<String, String> after) {
    List<String> unreadable = WrappedValueKey.unreadable(before);
    List<String> lost =
        of(before).stream()
            .filter(name -> !after.containsKey(name) && !unreadable.contains(name))
            .toList();
    if (!lost.isEmpty()) {
      throw new NotSupportedException(
              "the commit would remove value keys: " + String.join(", ", lost),
              "What they encrypted could not be decrypted by anyone. Nothing was committed.")
          .inTable(tableName);
    }

    WrappedValueKey.unreadable(after).stream()
        .filter(name -> !after.get(name).equals(before.get(name)))
        .findFirst()
        .ifPresent(
            name -> {
              throw new InvalidConfigurationException(
                      "property "
                          + name
                          + " would not be a value key as create_value_key writes"
                          + " it",
                      "create_value_key, rotate_value_key and drop_value_key change value keys."
                          + " Nothing was committed.")
                  .inTable(tableName);
            });
  }

  /**
   * Refuses to register older metadata over a table, if that would take a value key from it, or
   * bring a version back that was dropped.
   *
   * @throws NotSupportedException when it would
   */
  public static void checkRegistered(
      String tableName, Map<String, String> before, Map<String, String> after) {
    checkKept(tableName, before, after);
    List<String> back =
        of(before).stream()
            .filter(name -> DroppedValueKey.isOne(before.get(name)))
            .filter(name -> !DroppedValueKey.isOne(after.get(name)))
            .toList();
    if (!back.isEmpty()) {
      throw new NotSupportedException(
              "the metadata file would bring dropped value keys back: " + String.join(", ", back),
              "Register the table's newest metadata file. To bring one version back, restore its"
                  + " property (docs/encrypted-values.md). Nothing was registered.")
          .inTable(tableName);
    }
  }

  /**
   * Refuses to write something else in place of a value key, other than by the procedures of value
   * keys: values would be encrypted with another party's key, and older ones would be lost. A
   * property that is not a key, or was dropped, may become one again.
   *
   * @param before properties of the table
   * @param after what it is to be; null: removed, which {@link #checkKept} refuses
   * @throws InvalidConfigurationException when a version of a key would change
   */
  public static void checkUnchanged(
      String tableName, Map<String, String> before, String property, String after) {
    String own = property.startsWith(PREFIX) ? before.get(property) : null;
    if (own != null
        && after != null
        && !own.equals(after)
        && !DroppedValueKey.isOne(own)
        && WrappedValueKey.unreadable(Map.of(property, own)).isEmpty()) {
      throw new InvalidConfigurationException(
              "property " + property + " is a value key, which users cannot change",
              "rotate_value_key rewraps it, or adds a version; drop_value_key drops one."
                  + " Nothing was changed.")
          .inTable(tableName);
    }
  }

  /**
   * Refuses to drop a table that has value keys.
   *
   * @throws NotSupportedException when it has
   */
  public static void checkDrop(String tableName, Map<String, String> tableProperties) {
    checkNone(
        tableName,
        tableProperties,
        "What they encrypted could not be decrypted by anyone. If nothing needs them, disable"
            + " their master keys in the KMS, and then destroy them, but only those that wrap"
            + " nothing else: key_versions_in_use and encryption_keys show that. With another"
            + " table in "
            + TABLE
            + ", this one can be dropped. Nothing was dropped.");
  }

  /**
   * Refuses to rename a table that has value keys: nothing would find them under its new name, and
   * under that it could be dropped.
   *
   * @throws NotSupportedException when it has
   */
  public static void checkRename(String tableName, Map<String, String> tableProperties) {
    checkNone(
        tableName,
        tableProperties,
        "Nothing would find them under another name. Nothing was renamed.");
  }

  /**
   * Refuses to decrypt a table that has value keys: nothing would vouch for them in plaintext
   * metadata, and functions would find none in a plaintext table.
   *
   * @throws NotSupportedException when it has
   */
  public static void checkDecrypt(String tableName, Map<String, String> tableProperties) {
    checkNone(
        tableName,
        tableProperties,
        "They stay in an encrypted table, which has no rows to decrypt. To put columns into"
            + " plaintext, decrypt these: UPDATE ... SET c = decrypt_value(c, ...). Nothing was"
            + " changed.");
  }

  private static void checkNone(String tableName, Map<String, String> properties, String hint) {
    List<String> keys = of(properties);
    if (!keys.isEmpty()) {
      throw new NotSupportedException("it keeps value keys: " + String.join(", ", keys), hint)
          .inTable(tableName);
    }
  }

  /** The names of the properties that are value keys. */
  public static List<String> of(Map<String, String> tableProperties) {
    return new TreeSet<>(tableProperties.keySet())
        .stream().filter(name -> name.startsWith(PREFIX)).toList();
  }
}
