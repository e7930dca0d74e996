package io.icebergcrypto.spark.verify.scan;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.format.Json;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * Rows as compressed lines of JSON, as Spark's writer makes them: of texts, numbers and booleans.
 */
final class JsonLines {
  /** The most text that the driver holds, whatever it was compressed to. */
  private static final int MAX_TEXT = 4 << 20;

  private JsonLines() {}

  static byte[] of(List<Row> rows, StructType schema) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (GZIPOutputStream out = new GZIPOutputStream(bytes)) {
      for (Row row : rows) {
        Map<String, Object> values = new LinkedHashMap<>();
        for (String name : schema.fieldNames()) {
          values.put(name, row.get(schema.fieldIndex(name)));
        }

        out.write((Json.of(values) + "\n").getBytes(StandardCharsets.UTF_8));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    return bytes.toByteArray();
  }

  /**
   * The rows of a file; of columns that it does not have, null.
   *
   * @throws RuntimeException when it is not what was written
   */
  static Iterator<Row> rows(byte[] content, StructType schema) {
    return lines(text(content)).map(line -> row(line, schema)).iterator();
  }

  /** The rows of a file when they are few; null when they are more. */
  static List<Row> fewOrNull(byte[] content, StructType schema, int most) {
    byte[] some;
    try (InputStream in = text(content)) {
      some = in.readNBytes(MAX_TEXT + 1);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }

    if (some.length > MAX_TEXT) {
      return null;
    }

    List<Row> rows =
        lines(new ByteArrayInputStream(some))
            .limit(most + 1L)
            .map(line -> row(line, schema))
            .toList();
    return rows.size() > most ? null : rows;
  }

  /** How many rows a file has. */
  static long count(byte[] content) {
    return lines(text(content)).count();
  }

  private static Stream<String> lines(InputStream text) {
    return new BufferedReader(new InputStreamReader(text, StandardCharsets.UTF_8)).lines();
  }

  private static InputStream text(byte[] content) {
    try {
      InputStream bytes = new ByteArrayInputStream(content);
      return content.length == 0 ? bytes : new GZIPInputStream(bytes); // of a task without a file
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Row row(String line, StructType schema) {
    JsonObject json = Json.object(line);
    Object[] values = new Object[schema.size()];
    for (int i = 0; i < values.length; i++) {
      StructField field = schema.apply(i);
      values[i] = value(json.get(field.name()), field.dataType());
      if (values[i] == null && !field.nullable()) {
        throw new IllegalArgumentException(field.name() + " is missing");
      }
    }

    return RowFactory.create(values);
  }

  private static Object value(JsonElement json, DataType type) {
    if (json == null || json.isJsonNull()) {
      return null;
    }

    JsonPrimitive value = json.getAsJsonPrimitive();
    if (type.equals(DataTypes.StringType) && value.isString()) {
      return value.getAsString();
    } else if (type.equals(DataTypes.BooleanType) && value.isBoolean()) {
      return value.getAsBoolean();
    } else if (type.equals(DataTypes.LongType) && value.isNumber()) {
      return value.getAsBigDecimal().longValueExact();
    } else if (type.equals(DataTypes.IntegerType) && value.isNumber()) {
      return value.getAsBigDecimal().intValueExact();
    } else {
      throw new IllegalArgumentException(json + " is not of type " + type.simpleString());
    }
  }
}
