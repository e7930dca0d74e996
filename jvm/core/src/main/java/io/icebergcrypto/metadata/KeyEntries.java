package io.icebergcrypto.metadata;

import com.google.gson.JsonObject;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.util.ByteBuffers;

/** Entries of {@code encryption-keys} as JSON, in files that are not part of a table's metadata. */
public final class KeyEntries {
  private KeyEntries() {}

  /** An entry as what becomes JSON. */
  public static Map<String, Object> json(EncryptedKey key) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("id", key.keyId());
    byte[] encrypted = ByteBuffers.toByteArray(key.encryptedKeyMetadata());
    json.put("encrypted", Base64.getEncoder().encodeToString(encrypted));
    json.put("by", key.encryptedById());
    json.put("properties", key.properties() == null ? Map.of() : key.properties());
    return json;
  }

  /**
   * An entry from JSON.
   *
   * @throws RuntimeException Gson's or Java's, when it is none
   */
  public static EncryptedKey key(JsonObject json) {
    Map<String, String> properties = new HashMap<>();
    json.getAsJsonObject("properties")
        .entrySet()
        .forEach(entry -> properties.put(entry.getKey(), entry.getValue().getAsString()));
    return new BaseEncryptedKey(
        json.get("id").getAsString(),
        ByteBuffer.wrap(Base64.getDecoder().decode(json.get("encrypted").getAsString())),
        json.get("by").getAsString(),
        properties);
  }
}
