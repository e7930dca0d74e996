package io.icebergcrypto.config;

import com.google.gson.JsonObject;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.call.KeyCache;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One version of a value key, as its table keeps it: 32 random bytes, wrapped by a master key.
 *
 * @param name what SQL calls the key
 * @param id identifies the version in each value that it encrypted; even, as its lowest bit shows
 *     there how the value was encrypted
 * @param masterKeyId the master key that wrapped it
 * @param wrapped what the KMS gave, in base64
 * @param createdAtMs when it was made, in milliseconds since the epoch
 * @param checkValue by which its bytes are recognized, without revealing anything else about them
 */
public record WrappedValueKey(
    String name, int id, String masterKeyId, String wrapped, long createdAtMs, String checkValue)
    implements Serializable {
  /** The length of a value key in bytes. */
  public static final int LENGTH = 32;

  private static final long YEAR_9999 = 253_402_300_799_999L; // what SQL's timestamps have
  private static final String MASTER_KEY_ID = "master-key-id";
  private static final String WRAPPED_KEY = "wrapped-key";
  private static final String CREATED_AT_MS = "created-at-ms";
  private static final String CHECK_VALUE = "check-value";

  /**
   * The value keys that a table keeps: all versions that were not dropped.
   *
   * @param tableProperties of any table; only one that keeps value keys has some
   * @throws TamperedException when one is not as this project writes it
   */
  public static List<WrappedValueKey> all(Map<String, String> tableProperties) {
    return ValueKeyProperties.of(tableProperties).stream()
        .filter(property -> !DroppedValueKey.isOne(tableProperties.get(property)))
        .map(property -> parse(property, tableProperties.get(property)))
        .toList();
  }

  /**
   * The properties that should be value keys and are neither that nor dropped ones: nobody reads
   * them.
   *
   * @param tableProperties of any table
   */
  public static List<String> unreadable(Map<String, String> tableProperties) {
    return ValueKeyProperties.of(tableProperties).stream()
        .filter(property -> !isReadable(property, tableProperties.get(property)))
        .toList();
  }

  private static boolean isReadable(String property, String value) {
    try {
      return (DroppedValueKey.isOne(value)
              ? DroppedValueKey.parse(property, value)
              : parse(property, value))
          != null;
    } catch (TamperedException e) {
      return false;
    }
  }

  /** Makes one of what the KMS gave. */
  public static WrappedValueKey of(
      String name, int id, String masterKeyId, ByteBuffer wrapped, long ms, String checkValue) {
    String bytes = Base64.getEncoder().encodeToString(KeyCache.copyOf(wrapped));
    return new WrappedValueKey(name, id, masterKeyId, bytes, ms, checkValue);
  }

  /**
   * Reads a table's property.
   *
   * @throws TamperedException when it is not as this class writes it
   */
  public static WrappedValueKey parse(String property, String value) {
    try {
      JsonObject json = Json.object(value);
      WrappedValueKey key =
          new WrappedValueKey(
              ValueKeyProperties.name(property),
              ValueKeyProperties.id(property),
              json.get(MASTER_KEY_ID).getAsString(),
              json.get(WRAPPED_KEY).getAsString(),
              json.get(CREATED_AT_MS).getAsLong(),
              json.get(CHECK_VALUE).getAsString());
      ValueKeyProperties.checkName(key.name);
      key.bytes();
      boolean hasTime = key.createdAtMs >= 0 && key.createdAtMs <= YEAR_9999;
      if (hasTime && (key.id & 1) == 0 && key.property().equals(property)) {
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

  /** The table property that it is. */
  public String property() {
    return ValueKeyProperties.property(name, id);
  }

  /** The id, in hexadecimal digits, as SQL shows it. */
  public String version() {
    return ValueKeyProperties.version(id);
  }

  /** The same key, wrapped by another master key or another version of the same. */
  public WrappedValueKey rewrapped(String newMasterKeyId, ByteBuffer newWrapped) {
    return of(name, id, newMasterKeyId, newWrapped, createdAtMs, checkValue);
  }

  /** What the KMS gave. */
  public ByteBuffer bytes() {
    return ByteBuffer.wrap(Base64.getDecoder().decode(wrapped));
  }

  /** The property's value. */
  public String toJson() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put(MASTER_KEY_ID, masterKeyId);
    json.put(WRAPPED_KEY, wrapped);
    json.put(CREATED_AT_MS, createdAtMs);
    json.put(CHECK_VALUE, checkValue);
    return Json.of(json);
  }
}
