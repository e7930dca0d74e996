package io.icebergcrypto.metadata;

import com.google.gson.JsonObject;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.util.ByteBuffers;

/**
 * Entries of {@code encryption-keys} as JSON, in files that are not part of a table's metadata, and
 * as bytes, for the way to executors.
 */
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
   * @throws RuntimeException Gson's or Java's, when it is not valid
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

  /**
   * Entries as bytes: a table of many snapshots has thousands, which go with each task, and Java's
   * serialization takes several times as long for them.
   */
  public static byte[] bytes(Collection<EncryptedKey> keys) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream(64 + 256 * keys.size());
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeInt(keys.size());
      for (EncryptedKey key : keys) {
        write(out, key.keyId());
        write(out, key.encryptedById());
        write(out, ByteBuffers.toByteArray(key.encryptedKeyMetadata()));
        Map<String, String> properties = key.properties() == null ? Map.of() : key.properties();
        out.writeInt(properties.size());
        for (Map.Entry<String, String> property : properties.entrySet()) {
          write(out, property.getKey());
          write(out, property.getValue());
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e); // nothing is written to any storage
    }

    return bytes.toByteArray();
  }

  /** Entries from bytes that {@link #bytes} made. */
  public static List<EncryptedKey> keys(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    int count = in.getInt();
    List<EncryptedKey> keys = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      String id = text(in);
      String encryptedBy = text(in);
      ByteBuffer metadata = ByteBuffer.wrap(array(in));
      Map<String, String> properties = new HashMap<>();
      for (int left = in.getInt(); left > 0; left--) {
        properties.put(text(in), text(in));
      }

      keys.add(new BaseEncryptedKey(id, metadata, encryptedBy, properties));
    }

    return keys;
  }

  private static void write(DataOutputStream out, String text) throws IOException {
    write(out, text == null ? null : text.getBytes(StandardCharsets.UTF_8));
  }

  private static void write(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? -1 : bytes.length);
    if (bytes != null) {
      out.write(bytes);
    }
  }

  private static String text(ByteBuffer in) {
    byte[] bytes = array(in);
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  private static byte[] array(ByteBuffer in) {
    int length = in.getInt();
    byte[] bytes = length < 0 ? null : new byte[length];
    if (bytes != null) {
      in.get(bytes);
    }

    return bytes;
  }
}
