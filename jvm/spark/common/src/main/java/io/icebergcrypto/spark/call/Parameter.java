package io.icebergcrypto.spark.call;

import org.apache.spark.sql.types.DataType;

/**
 * A parameter of a procedure.
 *
 * @param defaultValue an expression of SQL; null when a value must be given
 */
public record Parameter(String name, DataType type, String defaultValue) {
  /** A parameter that must be given. */
  public static Parameter required(String name, DataType type) {
    return new Parameter(name, type, null);
  }

  /** A parameter that is NULL when it is not given. */
  public static Parameter optional(String name, DataType type) {
    return new Parameter(name, type, "NULL");
  }
}
