package io.icebergcrypto.kms.hadoop;

import com.google.gson.JsonObject;
import io.icebergcrypto.kms.http.JsonHttp;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * A data key as Hadoop KMS encrypts it, which Hadoop calls an EEK: with AES/CTR, without
 * authentication, under one version of a key.
 *
 * <p>Layout: length of the version (1 byte) | version (ASCII) | IV (16) | length of the encrypted
 * data key (1) | encrypted data key (16, 24 or 32).
 *
 * @param version of the key: what is behind {@code @} in its name, such as {@code 0}
 * @param iv as the KMS returns it; the counter of AES/CTR is derived from it
 * @param material the data key, encrypted
 */
record EncryptedKey(String version, byte[] iv, byte[] material) {
  private static final int IV_LENGTH = 16;

  /** How Hadoop's own stores number versions, from 0; another store may name them otherwise. */
  private static final Pattern NUMBERED = Pattern.compile("0|[1-9]\\d{0,8}");

  private static final Pattern VERSION = Pattern.compile("[\\w.=-]{1,200}");

  /**
   * Reads the KMS's answer to a request for a new one.
   *
   * @return empty when it is not an answer of a Hadoop KMS
   */
  static Optional<EncryptedKey> of(JsonObject answer, String keyId) {
    JsonObject encrypted = JsonHttp.object(answer, "encryptedKeyVersion");
    String name = JsonHttp.text(answer, "versionName");
    return name.startsWith(keyId + "@")
        ? checked(
            name.substring(keyId.length() + 1), bytes(answer, "iv"), bytes(encrypted, "material"))
        : Optional.empty();
  }

  /**
   * Reads one from where {@link #encode} wrote it, and no further.
   *
   * @return empty when it is not one that such a key could have
   * @throws java.nio.BufferUnderflowException when it is cut off
   */
  static Optional<EncryptedKey> read(ByteBuffer from) {
    String version = new String(next(from), StandardCharsets.US_ASCII);
    byte[] iv = new byte[IV_LENGTH];
    from.get(iv);
    return checked(version, iv, next(from));
  }

  byte[] encode() {
    byte[] name = version.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(1 + name.length + iv.length + 1 + material.length)
        .put((byte) name.length)
        .put(name)
        .put(iv)
        .put((byte) material.length)
        .put(material)
        .array();
  }

  /** The number of the version, from 1; 0 when it is not a number. */
  int number() {
    return NUMBERED.matcher(version).matches() ? Integer.parseInt(version) + 1 : 0;
  }

  /** What asks the KMS to decrypt it. */
  JsonObject request(String keyId) {
    JsonObject request = new JsonObject();
    request.addProperty("name", keyId);
    request.addProperty("iv", Base64.getUrlEncoder().encodeToString(iv));
    request.addProperty("material", Base64.getUrlEncoder().encodeToString(material));
    return request;
  }

  /** A member in Base64 of either alphabet; empty when it is not. */
  static byte[] bytes(JsonObject parent, String name) {
    try {
      String text = JsonHttp.text(parent, name).replace('+', '-').replace('/', '_');
      return Base64.getUrlDecoder().decode(text);
    } catch (IllegalArgumentException e) {
      return new byte[0]; // the decoder's error would show it
    }
  }

  /** Whether AES has keys of this length, in bytes. */
  private static boolean isKeyLength(int length) {
    return length == 16 || length == 24 || length == 32;
  }

  /** Not one for whose lengths the KMS would answer as if it had failed. */
  private static Optional<EncryptedKey> checked(String version, byte[] iv, byte[] material) {
    return VERSION.matcher(version).matches()
            && iv.length == IV_LENGTH
            && isKeyLength(material.length)
        ? Optional.of(new EncryptedKey(version, iv, material))
        : Optional.empty();
  }

  private static byte[] next(ByteBuffer from) {
    byte[] part = new byte[Byte.toUnsignedInt(from.get())];
    from.get(part);
    return part;
  }
}
