package io.icebergcrypto.commit;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.ValueKeyProperties;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.UpdateProperties;

/**
 * A change of a table's properties that leaves alone where its plaintext still is, and value keys.
 * Without the former nobody would know, and with others the files of another table would pass for
 * it.
 */
public record OwnProperties(String tableName, Map<String, String> before, UpdateProperties below)
    implements UpdateProperties {
  /**
   * Checks the properties that a statement would give a table.
   *
   * @throws InvalidConfigurationException when it changes one of them, or a value key
   */
  public static void check(
      String tableName, Map<String, String> before, Map<String, String> after) {
    Stream.concat(
            EncryptionProperties.OF_PLAINTEXT.stream(), ValueKeyProperties.of(before).stream())
        .forEach(name -> check(tableName, before, name, after.get(name)));
  }

  private static void check(
      String tableName, Map<String, String> before, String name, String value) {
    ValueKeyProperties.checkUnchanged(tableName, before, name, value);
    boolean isStray = value == null && EncryptionProperties.keyId(before) == null;
    if (EncryptionProperties.OF_PLAINTEXT.contains(name)
        && !isStray // of no purge: it may be removed
        && !Objects.equals(before.get(name), value)) {
      throw new InvalidConfigurationException(
              String.format("property %s cannot be changed by users", name),
              "Leave it as it is. encrypt_table sets it: it leads to the plaintext that is still"
                  + " there. purge_plaintext deletes that, and removes the property.")
          .inTable(tableName);
    }
  }

  @Override
  public UpdateProperties set(String key, String value) {
    check(tableName, before, key, value);
    below.set(key, value);
    return this;
  }

  @Override
  public UpdateProperties remove(String key) {
    check(tableName, before, key, null);
    below.remove(key);
    return this;
  }

  @Override
  public UpdateProperties defaultFormat(FileFormat format) {
    below.defaultFormat(format);
    return this;
  }

  @Override
  public Map<String, String> apply() {
    return below.apply();
  }

  @Override
  public void commit() {
    below.commit();
  }

  @Override
  public Object updateEvent() {
    return below.updateEvent();
  }
}
