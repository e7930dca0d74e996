package io.icebergcrypto.kms.blob;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.NotSupportedException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * A wrapped key that says who wrapped it, so that a blob shown to the wrong KMS gives a clear
 * error. For the KMSs for which Iceberg has no client of its own (vault, pkcs11, hadoop, keystore),
 * and where the user chose to store more than Iceberg's client does.
 *
 * <p>Layout: magic {@code ICWK} (4 bytes) | layout version (1 byte, 1) | length of the KMS's name
 * (1) | KMS's name (ASCII) | master key's version (4, big endian) | body.
 *
 * @param kms the KMS's type, as in {@code encryption.kms-type}
 * @param keyVersion the version of the master key, from 1; 0 when the KMS does not say it
 * @param body what the KMS made
 */
public record WrappedKey(String kms, int keyVersion, byte[] body) {
  private static final byte[] MAGIC = "ICWK".getBytes(StandardCharsets.US_ASCII);
  private static final byte LAYOUT = 1;
  private static final int NAME = MAGIC.length + 2;

  /** The header and the body. */
  public ByteBuffer encode() {
    byte[] header = header(kms, keyVersion);
    return ByteBuffer.allocate(header.length + body.length).put(header).put(body).flip();
  }

  /** The header alone; who wraps with AES-GCM authenticates it. */
  public static byte[] header(String kms, int keyVersion) {
    byte[] name = kms.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(NAME + name.length + Integer.BYTES)
        .put(MAGIC)
        .put(LAYOUT)
        .put((byte) name.length)
        .put(name)
        .putInt(keyVersion)
        .array();
  }

  /**
   * What AES-GCM authenticates beside the key (the AAD): the header and the master key's id.
   *
   * @param keyId the master key's id
   */
  public static byte[] authenticated(String kms, int keyVersion, String keyId) {
    byte[] header = header(kms, keyVersion);
    byte[] id = keyId.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(header.length + id.length).put(header).put(id).array();
  }

  /**
   * Reads a blob of a KMS with a header.
   *
   * @param blob stays as it is
   * @param kms the KMS that is asked to unwrap it
   * @param keyId the master key's id, for the error
   * @throws BadWrappedKeyException when another KMS wrapped it, or it is not a wrapped key
   * @throws NotSupportedException when a later version of this project wrapped it
   */
  public static WrappedKey parse(ByteBuffer blob, String kms, String keyId) {
    String wrapper =
        kmsOf(blob, keyId)
            .orElseThrow(
                () ->
                    new BadWrappedKeyException(
                        String.format(
                            "A key wrapped under '%s' was not wrapped by KMS type %s: it does not"
                                + " have its header (%d bytes)",
                            keyId, kms, blob.remaining()),
                        "If the table was written with another KMS (aws, gcp, azure), set that as"
                            + " encryption.kms-type; otherwise the table's metadata was changed or"
                            + " damaged."));
    if (!wrapper.equals(kms)) {
      throw otherKms(wrapper, kms, keyId);
    }

    ByteBuffer bytes = blob.duplicate();
    bytes.position(bytes.position() + NAME + wrapper.length());
    int keyVersion = bytes.getInt();
    byte[] body = new byte[bytes.remaining()];
    bytes.get(body);
    if (keyVersion < 0) {
      throw new BadWrappedKeyException(
          String.format(
              "A key wrapped by %s under '%s' names an impossible key version: %d",
              kms, keyId, keyVersion),
          "The table's metadata was changed or damaged: restore it.");
    }

    return new WrappedKey(wrapper, keyVersion, body);
  }

  /**
   * The KMS that a blob's header names. A blob without a header that looks like one, by chance, is
   * one of 2^32.
   *
   * @param keyId the master key's id, for the error
   * @return empty when the blob has no whole header
   * @throws NotSupportedException when it has one of a later version of this project
   */
  public static Optional<String> kmsOf(ByteBuffer blob, String keyId) {
    ByteBuffer bytes = blob.duplicate();
    if (bytes.remaining() < NAME) {
      return Optional.empty();
    }

    byte[] magic = new byte[MAGIC.length];
    bytes.get(magic);
    int layout = Byte.toUnsignedInt(bytes.get());
    int length = Byte.toUnsignedInt(bytes.get());
    if (!Arrays.equals(magic, MAGIC)) {
      return Optional.empty();
    }

    if (layout > LAYOUT) {
      throw new NotSupportedException(
          String.format(
              "A key wrapped under '%s' has layout %d, and this version knows layout %d",
              keyId, layout, LAYOUT),
          "A later version of iceberg-crypto wrapped it: update the jar here.");
    }

    if (layout != LAYOUT || bytes.remaining() < length + Integer.BYTES) {
      return Optional.empty();
    }

    byte[] name = new byte[length];
    bytes.get(name);
    return Optional.of(new String(name, StandardCharsets.US_ASCII));
  }

  /**
   * The version of the master key that a blob's header names.
   *
   * @return empty when the blob does not say
   */
  public static OptionalInt versionOf(ByteBuffer blob, String keyId) {
    Optional<String> kms = kmsOf(blob, keyId);
    int version = kms.isEmpty() ? 0 : parse(blob, kms.get(), keyId).keyVersion();
    return version == 0 ? OptionalInt.empty() : OptionalInt.of(version);
  }

  /**
   * Refuses a blob with a header, for a KMS whose blobs have none.
   *
   * @throws BadWrappedKeyException when the blob has a header
   * @throws NotSupportedException when it has one of a later version of this project
   */
  public static void refuseHeader(ByteBuffer blob, String kms, String keyId) {
    kmsOf(blob, keyId)
        .ifPresent(
            wrapper -> {
              throw otherKms(wrapper, kms, keyId);
            });
  }

  /** Without the body, which is not secret, but long. */
  @Override
  public String toString() {
    return String.format("key wrapped by %s, version %d, %d bytes", kms, keyVersion, body.length);
  }

  private static BadWrappedKeyException otherKms(String wrapper, String kms, String keyId) {
    return new BadWrappedKeyException(
        String.format(
            "A key wrapped under '%s' was wrapped by KMS type '%s', and this catalog's KMS is %s",
            keyId, printable(wrapper), kms),
        "Set encryption.kms-type to the KMS that the table was written with.");
  }

  private static String printable(String name) {
    return name.replaceAll("[^\\x21-\\x7e]", "?");
  }
}
