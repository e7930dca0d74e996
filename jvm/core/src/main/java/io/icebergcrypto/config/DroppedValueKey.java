package io.icebergcrypto.config;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Json;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What stays of a version of a value key that was dropped, so that errors can tell: its property,
 * without the key.
 *
 * @param name what SQL called the key
 * @param id the version's
 * @param createdAtMs when the version was made, in milliseconds since the epoch
 */
public record DroppedValueKey(String name, int id, long createdAtMs) implements Serializable {
  private static final String CREATED_AT_MS = "created-at-ms";
  private static final String DROPPED_AT_MS = "dropped-at-ms";

  /** Whether a property's value is that of a dropped version. */
  static boolean isOne(String value) {
    try {
      return Json.object(value).has(DROPPED_AT_MS);
    } catch (RuntimeException e) { // Gson's: reading it as a key reports that
      return false;
    }
  }

  /**
   * Those that a table's properties tell of.
   *
   * @throws TamperedException when one is not as this project writes it
   */
  public static List<DroppedValueKey> all(Map<String, String> tableProperties) {
    return ValueKeyProperties.of(tableProperties).stream()
        .filter(property -> isOne(tableProperties.get(property)))
        .map(property -> parse(property, tableProperties.get(property)))
        .toList();
  }

  static DroppedValueKey parse(String property, String value) {
    try {
      return new DroppedValueKey(
          ValueKeyProperties.name(property),
          ValueKeyProperties.id(property),
          Json.object(value).get(CREATED_AT_MS).getAsLong());
    } catch (RuntimeException e) { // Gson's, and of numbers
      throw new TamperedException(
          "property " + property + " is not as drop_value_key writes it",
          "Restore the property from an older metadata file of the table, or a backup.",
          e);
    }
  }

  /** The value that the version's property gets. */
  public String toJson(long droppedAtMs) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put(CREATED_AT_MS, createdAtMs);
    json.put(DROPPED_AT_MS, droppedAtMs);
    return Json.of(json);
  }
}
