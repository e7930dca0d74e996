package io.icebergcrypto.format;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.JsonSerializer;
import java.lang.reflect.RecordComponent;
import java.time.Instant;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * The JSON that callers outside Java give and get; written on one line, nulls included, times in
 * ISO 8601, UTC.
 */
public final class Json {
  private static final Gson GSON =
      new GsonBuilder()
          .serializeNulls()
          .disableHtmlEscaping()
          .registerTypeAdapter(
              Instant.class,
              (JsonSerializer<Instant>) (time, type, context) -> new JsonPrimitive(time.toString()))
          .create();

  private Json() {}

  /**
   * Writes a value.
   *
   * @param value a map, a record, a list, or what these hold
   * @throws IllegalArgumentException for NaN and infinity, which JSON does not have
   */
  public static String of(Object value) {
    return GSON.toJson(value);
  }

  /**
   * A public record's components by their names with underscores, in their order. Enums become
   * words: {@code MANIFEST_LIST} is {@code manifest list}.
   */
  public static Map<String, Object> map(Record record) {
    Map<String, Object> map = new LinkedHashMap<>();
    for (RecordComponent component : record.getClass().getRecordComponents()) {
      String name = component.getName().replaceAll("[A-Z]", "_$0").toLowerCase(Locale.ROOT);
      try {
        Object value = component.getAccessor().invoke(record);
        map.put(name, value instanceof Enum<?> one ? words(one) : value);
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException(name + " cannot be read", e);
      }
    }

    return map;
  }

  /** An enum's name as words. */
  public static String words(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }

  /**
   * Reads an object.
   *
   * @throws RuntimeException Gson's, when it is not valid
   */
  public static JsonObject object(String text) {
    return JsonParser.parseString(text).getAsJsonObject();
  }

  /**
   * Reads an object whose values are strings.
   *
   * @throws RuntimeException Gson's, when it is not valid
   */
  public static Map<String, String> texts(String text) {
    Map<String, String> texts = new HashMap<>();
    object(text).entrySet().forEach(e -> texts.put(e.getKey(), e.getValue().getAsString()));
    return texts;
  }
}
