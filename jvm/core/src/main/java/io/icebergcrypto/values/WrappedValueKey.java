package io.icebergcrypto.values;

import com.google.gson.JsonObject;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.format.Json;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * One version of a value key, as its table keeps it: 32 random bytes, wrapped by a master key.
 *
 * @param id identifies the version in each value that it encrypted; even, as its lowest bit tells
 *     there how the value was encrypted
 * @param masterKeyId the master key that wrapped it
 * @param wrapped what the KMS gave, in base64
 * @param createdAtMs when it was made, in milliseconds since the epoch
 */
record WrappedValueKey(String name, int id, String masterKeyId, String wrapped, long createdAtMs)
    implements Serializable {

  private static final String MASTER_KEY_ID = "master-key-id";
  private static final String WRAPPED_KEY = "wrapped-key";
  private static final String CREATED_AT_MS = "created-at-ms";

  static WrappedValueKey of(String name, int id, String masterKeyId, ByteBuffer wrapped, long ms) {
    byte[] bytes = new byte[wrapped.remaining()];
    wrapped.duplicate().get(bytes);
    return new WrappedValueKey(
        name, id, masterKeyId, Base64.getEncoder().encodeToString(bytes), ms);
  }

  /**
   * Reads a table's property.
   *
   * @throws TamperedException when it is not as this class writes it
   */
  static WrappedValueKey parse(String property, String value) {
    try {
      int dot = property.lastIndexOf('.');
      JsonObject json = Json.object(value);
      WrappedValueKey key =
          new WrappedValueKey(
              property.substring(ValueKeyProperties.PREFIX.length(), dot),
              Integer.parseUnsignedInt(property.substring(dot + 1), 16),
              json.get(MASTER_KEY_ID).getAsString(),
              json.get(WRAPPED_KEY).getAsString(),
              json.get(CREATED_AT_MS).getAsLong());
      ValueKeyProperties.checkName(key.name);
      key.bytes();
      if ((key.id & 1) == 0 && key.property().equals(property)) {
        return key;
      }
    } catch (RuntimeException e) { // Gson's, and of numbers and base64
      throw unreadable(property, e);
    }

    throw unreadable(property, null);
  }

  private static TamperedException unreadable(String property, RuntimeException cause) {
    return new TamperedException(
        "property " + property + " is not a value key as create_value_key writes it",
        "Restore the property from an older metadata file of the table, or a backup.",
        cause);
  }

  String property() {
    return ValueKeyProperties.property(name, id);
  }

  ByteBuffer bytes() {
    return ByteBuffer.wrap(Base64.getDecoder().decode(wrapped));
  }

  /** The property's value. */
  String toJson() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put(MASTER_KEY_ID, masterKeyId);
    json.put(WRAPPED_KEY, wrapped);
    json.put(CREATED_AT_MS, createdAtMs);
    return Json.of(json);
  }
}
