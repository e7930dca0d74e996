package io.icebergcrypto.spark.operations;

import io.icebergcrypto.format.Outcome;
import java.util.List;
import java.util.Map;

/**
 * What an operation gives.
 *
 * @param value for Python, which gets it as JSON: a map, a list, a record, a string, a number or
 *     null
 * @param rows for SQL: the values of each row by its columns
 */
public record Answer(Object value, List<Map<String, Object>> rows) {
  /** One row, which is all that Python gets, too. */
  static Answer row(Map<String, Object> row) {
    return new Answer(row, List.of(row));
  }

  /** The same of what was done to a table. */
  static Answer row(Outcome done) {
    return row(done.toMap());
  }

  /** Of what is not a procedure. */
  static Answer value(Object value) {
    return new Answer(value, List.of());
  }
}
