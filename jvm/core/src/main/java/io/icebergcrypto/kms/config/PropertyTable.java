package io.icebergcrypto.kms.config;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The names of all properties, from {@code properties.tsv}, the table that the reference for users
 * is made of, too: a property that is not documented is not known, and refused.
 */
public final class PropertyTable {
  private static final Map<String, List<String>> NAMES = read();

  private PropertyTable() {}

  /** The names of a section, such as {@code rules} or {@code kms.vault}, in the table's order. */
  public static List<String> names(String section) {
    return NAMES.get(section);
  }

  static Set<String> sections() {
    return NAMES.keySet();
  }

  private static Map<String, List<String>> read() {
    try (InputStream table = PropertyTable.class.getResourceAsStream("properties.tsv")) {
      return new String(table.readAllBytes(), StandardCharsets.UTF_8)
          .lines()
          .skip(1) // the columns' names
          .map(row -> row.split("\t"))
          .collect(
              Collectors.groupingBy(
                  row -> row[0],
                  Collectors.mapping(row -> row[1], Collectors.toUnmodifiableList())));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
