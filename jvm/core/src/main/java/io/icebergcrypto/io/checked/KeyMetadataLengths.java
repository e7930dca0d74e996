package io.icebergcrypto.io.checked;

import java.nio.ByteBuffer;

/**
 * Checks the lengths in a file's key metadata before Iceberg reads it, whose Avro reader allocates
 * what a length says, up to 2 GiB, before it looks for the bytes.
 *
 * <p>Layout of version 1 (Iceberg specification, standard key metadata): the version (1 byte), then
 * Avro: length and bytes of the key, a union of null and the AAD prefix (length and bytes), a union
 * of null and the file's length.
 */
public final class KeyMetadataLengths {
  /** The only version. */
  static final int VERSION = 1;

  private static final int NONCE_AND_TAG = 28;

  /** Version, the key's length, the AAD prefix as a union and with its length, an empty union. */
  private static final int WITHOUT_KEY = 1 + 1 + 1 + 1 + 16 + 1;

  private KeyMetadataLengths() {}

  /** The version of key metadata, its first byte; 0 if it is empty. */
  static int version(ByteBuffer metadata) {
    return metadata.hasRemaining() ? metadata.get(metadata.position()) & 0xff : 0;
  }

  /**
   * Whether the key and the AAD prefix are no longer than the bytes that are there.
   *
   * @param metadata stays as it is
   */
  public static boolean fit(ByteBuffer metadata) {
    ByteBuffer bytes = metadata.duplicate();
    if (!bytes.hasRemaining() || bytes.get() != VERSION) {
      return true; // Iceberg refuses it by itself
    }

    if (!skipBytes(bytes)) {
      return false;
    }

    return number(bytes) != 1 || skipBytes(bytes);
  }

  /**
   * Whether encrypted key metadata is of the length that it has without a file's length, with a key
   * of 16, 24 or 32 bytes and an AAD prefix of 16. With one it is of another length.
   *
   * @param encrypted nonce, ciphertext and tag; may be null
   */
  public static boolean mayLackLength(ByteBuffer encrypted) {
    int plain = encrypted == null ? 0 : encrypted.remaining() - NONCE_AND_TAG;
    return plain == WITHOUT_KEY + 16 || plain == WITHOUT_KEY + 24 || plain == WITHOUT_KEY + 32;
  }

  private static boolean skipBytes(ByteBuffer bytes) {
    long length = number(bytes);
    if (length < 0 || length > bytes.remaining()) {
      return false;
    }

    bytes.position(bytes.position() + (int) length);
    return true;
  }

  /** Avro's zigzag number; -1 when it is cut off or too long. */
  private static long number(ByteBuffer bytes) {
    long value = 0;
    for (int shift = 0; shift < Long.SIZE && bytes.hasRemaining(); shift += 7) {
      byte next = bytes.get();
      value |= (next & 0x7fL) << shift;
      if (next >= 0) {
        return value >>> 1 ^ -(value & 1);
      }
    }

    return -1;
  }
}
