package io.icebergcrypto.parquet;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory;
import org.apache.parquet.schema.MessageType;

/**
 * Which columns have keys of their own: Parquet's property {@code parquet.encryption.column.keys},
 * {@code key1:column,column;key2:column}. A struct, list or map stands for all columns in it.
 *
 * @param keyIds the master keys' ids, escaped as in the property, by the names of columns
 */
record ColumnKeys(Map<String, String> keyIds) {
  private static final String PROPERTY = PropertiesDrivenCryptoFactory.COLUMN_KEYS_PROPERTY_NAME;

  /**
   * Reads the property.
   *
   * @param list null: no column has a key
   * @throws InvalidConfigurationException when it cannot be understood, or names a column twice
   */
  static ColumnKeys parse(String list) {
    Map<String, String> keyIds = new LinkedHashMap<>();
    for (String entry : list == null ? new String[0] : list.split(";")) {
      if (entry.isBlank()) {
        continue;
      }

      String[] parts = entry.split(":", -1);
      if (parts.length != 2 || parts[0].isBlank()) {
        throw new InvalidConfigurationException(
            String.format("Property %s has '%s', which is not key:column,column", PROPERTY, entry),
            "Write a key id, a colon, and its columns separated by commas; separate keys by"
                + " semicolons. Write a colon within a key id as %3A.");
      }

      for (String column : parts[1].split(",", -1)) {
        add(keyIds, column.trim(), parts[0].trim());
      }
    }

    return new ColumnKeys(keyIds);
  }

  private static void add(Map<String, String> keyIds, String column, String keyId) {
    if (column.isEmpty()) {
      throw new InvalidConfigurationException(
          String.format("Property %s has an empty column name under key '%s'", PROPERTY, keyId),
          "Name the column, or leave the comma out.");
    }

    String other = keyIds.putIfAbsent(column, keyId);
    if (other != null) {
      throw twoKeys(column, other, keyId, "It has it");
    }
  }

  private static InvalidConfigurationException twoKeys(
      String column, String one, String other, String where) {
    return new InvalidConfigurationException(
        one.equals(other)
            ? String.format("Column '%s' is named twice under key '%s'", column, one)
            : String.format("Column '%s' has two keys: '%s' and '%s'", column, one, other),
        String.format("%s in %s: name it once.", where, PROPERTY));
  }

  boolean isEmpty() {
    return keyIds.isEmpty();
  }

  /**
   * Finds the columns in the schema of a file.
   *
   * @return the columns of the file that have keys, by their whole names
   * @throws InvalidConfigurationException when one is not there, or has two keys
   * @throws NotSupportedException when Parquet's property cannot name it
   */
  ColumnKeys in(MessageType schema) {
    Map<String, String> found = new TreeMap<>();
    Map<String, String> through = new TreeMap<>();
    keyIds.forEach(
        (name, keyId) -> {
          List<String[]> columns =
              schema.getColumns().stream()
                  .map(ColumnDescriptor::getPath)
                  .filter(path -> isOrIsIn(String.join(".", path), name))
                  .toList();
          if (columns.isEmpty()) {
            throw missing(name, keyId, schema);
          }

          for (String[] path : columns) {
            String column = nameable(path);
            String other = found.putIfAbsent(column, keyId);
            if (other != null) {
              throw twoKeys(
                  column, other, keyId, "'" + through.get(column) + "' and '" + name + "' stand");
            }

            through.put(column, name);
          }
        });
    return new ColumnKeys(found);
  }

  /** Whether a file has any of the columns. */
  boolean namesOneOf(MessageType schema) {
    return schema.getColumns().stream()
        .map(column -> String.join(".", column.getPath()))
        .anyMatch(column -> keyIds.keySet().stream().anyMatch(name -> isOrIsIn(column, name)));
  }

  private static boolean isOrIsIn(String column, String name) {
    return column.equals(name) || column.startsWith(name + ".");
  }

  /** The name of a column as the property has it. */
  private static String nameable(String[] path) {
    for (String part : path) {
      if (part.matches(".*[.,:;].*") || !part.equals(part.trim())) {
        throw new NotSupportedException(
            String.format(
                "Column '%s' cannot have a key: %s cannot express its name",
                String.join(".", path), PROPERTY),
            "Rename it: names with dots, commas, colons, semicolons, or leading or trailing white"
                + " space cannot be written there. A uniform key encrypts every column.");
      }
    }

    return String.join(".", path);
  }

  private static InvalidConfigurationException missing(
      String name, String keyId, MessageType schema) {
    List<String> columns =
        schema.getColumns().stream().map(column -> String.join(".", column.getPath())).toList();
    String similar =
        columns.stream()
            .filter(column -> column.equalsIgnoreCase(name))
            .map(column -> " Did you mean '" + column + "'? Case matters.")
            .findFirst()
            .orElse("");
    return new InvalidConfigurationException(
        String.format("Key '%s' is for column '%s', which is not in the file", keyId, name),
        String.format(
            "The file's columns are %s.%s A column that the table is partitioned by is not in its"
                + " files: its values are in the names of folders, in plaintext. Nothing was"
                + " written to the file.",
            columns, similar));
  }

  /** These, and all other columns of the schema under one more key. */
  ColumnKeys withOthers(MessageType schema, String keyId) {
    Map<String, String> all = new TreeMap<>(keyIds);
    for (ColumnDescriptor column : schema.getColumns()) {
      all.putIfAbsent(nameable(column.getPath()), keyId);
    }

    return new ColumnKeys(all);
  }

  boolean has(String... path) {
    return keyIds.containsKey(String.join(".", Arrays.asList(path)));
  }

  /** As the property has them. */
  @Override
  public String toString() {
    Map<String, List<String>> byKey =
        keyIds.keySet().stream()
            .sorted()
            .collect(Collectors.groupingBy(keyIds::get, TreeMap::new, Collectors.toList()));
    return byKey.entrySet().stream()
        .map(entry -> entry.getKey() + ":" + String.join(",", entry.getValue()))
        .collect(Collectors.joining(";"));
  }
}
