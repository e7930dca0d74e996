package io.icebergcrypto.spark.values;

import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.values.ValueEncryption;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Locale;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What a function does with a value and a key. A string becomes a string, in base64 where it is a
 * ciphertext; binary becomes binary.
 */
enum ValueOperation {
  ENCRYPT_VALUE("encrypts a value, differently each time"),
  ENCRYPT_VALUE_DETERMINISTIC("encrypts a value; the same value always gives the same"),
  DECRYPT_VALUE("decrypts what encrypt_value or encrypt_value_deterministic encrypted"),
  TRY_DECRYPT_VALUE("decrypts a value; NULL if it cannot be decrypted or the key is not available"),
  HASH_VALUE("the HMAC-SHA256 of a value under a key, strings in hexadecimal digits");

  private static final byte[] NONE = new byte[0];

  private final String description;

  ValueOperation(String description) {
    this.description = description;
  }

  String sqlName() {
    return name().toLowerCase(Locale.ROOT);
  }

  String description() {
    return description;
  }

  /** Whether the same arguments give the same result. */
  boolean isDeterministic() {
    return this != ENCRYPT_VALUE;
  }

  /** Whether a third argument says what a value is for. */
  boolean takesContext() {
    return this != HASH_VALUE;
  }

  private boolean decrypts() {
    return this == DECRYPT_VALUE || this == TRY_DECRYPT_VALUE;
  }

  /**
   * Refuses a key's name that is NULL where the result, NULL, would take the place of a value.
   *
   * @throws KeyNotFoundException of all functions but {@code try_decrypt_value}
   */
  void refuseNullName() {
    if (this != TRY_DECRYPT_VALUE) {
      throw new KeyNotFoundException(
          String.format(
              "The name of the value key is NULL, and %s would return NULL instead of the value",
              sqlName()),
          "Give each value a key: where the name is a column, fill it, or use coalesce(<column>,"
              + " '<key>').");
    }
  }

  /**
   * NULL stays NULL.
   *
   * @throws KeyNotFoundException when there is a value, and its key's name is NULL
   */
  byte[] apply(ValueEncryption values, byte[] value, UTF8String key, UTF8String context) {
    if (isNull(value, key)) {
      return null;
    }

    String name = key.toString();
    byte[] bytes = context == null ? NONE : context.getBytes();
    return switch (this) {
      case ENCRYPT_VALUE -> values.encrypt(name, value, bytes);
      case ENCRYPT_VALUE_DETERMINISTIC -> values.encryptDeterministic(name, value, bytes);
      case DECRYPT_VALUE -> values.decrypt(name, value, bytes);
      case TRY_DECRYPT_VALUE -> values.tryDecrypt(name, value, bytes);
      case HASH_VALUE -> values.hash(name, value);
    };
  }

  /** Whether the result is NULL. */
  private boolean isNull(Object value, UTF8String key) {
    if (value != null && key == null) {
      refuseNullName();
    }

    return value == null || key == null;
  }

  /** The same. */
  UTF8String apply(ValueEncryption values, UTF8String value, UTF8String key, UTF8String context) {
    if (isNull(value, key)) {
      return null;
    }

    byte[] given = decrypts() ? ciphertext(value) : value.getBytes();
    byte[] result = apply(values, given, key, context);
    if (result == null) {
      return null;
    }

    if (this == HASH_VALUE) {
      return UTF8String.fromString(HexFormat.of().formatHex(result));
    }

    return UTF8String.fromBytes(decrypts() ? result : Base64.getEncoder().encode(result));
  }

  /** Nothing, which is not a ciphertext, when it is not base64. */
  private static byte[] ciphertext(UTF8String value) {
    try {
      return Base64.getDecoder().decode(value.getBytes());
    } catch (IllegalArgumentException e) {
      return NONE;
    }
  }
}
