package io.icebergcrypto.format;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;

/** Writes the JSON that callers outside Java get: on one line, nulls included. */
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
}
