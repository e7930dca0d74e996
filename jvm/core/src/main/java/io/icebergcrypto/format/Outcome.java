package io.icebergcrypto.format;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What a call has done to a table, or would do: a public record, which people get in words, too.
 */
public interface Outcome {
  /** Whether the table was changed. */
  boolean committed();

  /** One sentence for people, or some. */
  String message();

  /**
   * The names and values for JSON and rows: the record's components, with the message behind {@link
   * #committed}.
   */
  default Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    Json.map((Record) this)
        .forEach(
            (name, value) -> {
              values.put(name, value);
              if (name.equals("committed")) {
                values.put("message", message());
              }
            });
    return values;
  }
}
