package io.icebergcrypto.format;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.HashMap;
import java.util.Map;

/** The JSON that callers outside Java give and get; written on one line, nulls included. */
public final class Json {
  private static final Gson GSON =
      new GsonBuilder().serializeNulls().disableHtmlEscaping().create();

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
