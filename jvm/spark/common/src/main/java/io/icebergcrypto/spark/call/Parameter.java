package io.icebergcrypto.spark.call;

import org.apache.spark.sql.types.DataType;

/**
 * A parameter of a procedure.
 *
 * @param defaultValue an expression of SQL; null when a value must be given
 */
public record Parameter(String name, DataType type, String defaultValue) {}
