package io.icebergcrypto.format;

import java.util.Map;

/**
 * Writes JSON (RFC 8259). It only writes: Iceberg's own JSON classes are shaded, and Spark's are
 * not there in engine-neutral code.
 */
public final class Json {
  private Json() {}

  /**
   * Writes an object on one line, its members in the map's order.
   *
   * @param members strings, enums (by name), booleans, finite numbers, nulls, iterables and maps of
   *     these; the names are strings
   * @throws IllegalArgumentException for a value of another kind, NaN and infinity among them
   */
  public static String object(Map<String, ?> members) {
    StringBuilder out = new StringBuilder();
    appendObject(out, members);
    return out.toString();
  }

  private static void append(StringBuilder out, Object value) {
    if (value == null || value instanceof Boolean) {
      out.append(value);
    } else if (value instanceof CharSequence text) {
      appendString(out, text);
    } else if (value instanceof Enum<?> constant) {
      appendString(out, constant.name());
    } else if (value instanceof Number number) {
      appendNumber(out, number);
    } else if (value instanceof Map<?, ?> map) {
      appendObject(out, map);
    } else if (value instanceof Iterable<?> values) {
      appendArray(out, values);
    } else {
      throw new IllegalArgumentException("Not a JSON value: " + value.getClass().getName());
    }
  }

  private static void appendObject(StringBuilder out, Map<?, ?> members) {
    out.append('{');
    String separator = "";
    for (Map.Entry<?, ?> member : members.entrySet()) {
      if (!(member.getKey() instanceof String name)) {
        throw new IllegalArgumentException("Not the name of a JSON member: " + member.getKey());
      }
      out.append(separator);
      appendString(out, name);
      out.append(": ");
      append(out, member.getValue());
      separator = ", ";
    }
    out.append('}');
  }

  private static void appendArray(StringBuilder out, Iterable<?> values) {
    out.append('[');
    String separator = "";
    for (Object value : values) {
      out.append(separator);
      append(out, value);
      separator = ", ";
    }
    out.append(']');
  }

  private static void appendNumber(StringBuilder out, Number number) {
    if (number instanceof Double || number instanceof Float) {
      if (!Double.isFinite(number.doubleValue())) {
        throw new IllegalArgumentException("Not a JSON number: " + number);
      }
    }
    out.append(number);
  }

  private static void appendString(StringBuilder out, CharSequence text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      switch (c) {
        case '"' -> out.append("\\\"");
        case '\\' -> out.append("\\\\");
        case '\n' -> out.append("\\n");
        case '\r' -> out.append("\\r");
        case '\t' -> out.append("\\t");
        default -> {
          // Surrogates too: one that stands alone has no UTF-8 form, and a pair reads the same.
          if (c < 0x20 || Character.isSurrogate(c)) {
            out.append(String.format("\\u%04x", (int) c));
          } else {
            out.append(c);
          }
        }
      }
    }
    out.append('"');
  }
}
