package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.TamperedException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.iceberg.encryption.Ciphers;

/**
 * Decrypts the modules of one Parquet file (Parquet modular encryption, section 5.1): a length as a
 * little-endian 32-bit integer, nonce, ciphertext and tag. Nonce, ciphertext and tag are as in a
 * block of an AES GCM stream, so Iceberg's decryptor of those does it: unlike Parquet's, it checks
 * the tag of an empty module too, and needs no new array for each.
 */
final class ModuleDecryptor {
  /** Bytes in front of a module's nonce: its length. */
  static final int LENGTH = 4;

  /** The bytes of a module of no content. */
  static final int OVERHEAD = LENGTH + Ciphers.NONCE_LENGTH + Ciphers.GCM_TAG_LENGTH;

  /** The bytes of a plaintext footer's signature: a nonce and a tag. */
  static final int SIGNATURE = Ciphers.NONCE_LENGTH + Ciphers.GCM_TAG_LENGTH;

  private static final int SMALLEST_BUFFER = 64 << 10;

  private final Ciphers.AesGcmDecryptor decryptor;
  private final Plain plain;

  ModuleDecryptor(byte[] key) {
    this(key, new Plain());
  }

  private ModuleDecryptor(byte[] key, Plain plain) {
    this.decryptor = new Ciphers.AesGcmDecryptor(key);
    this.plain = plain;
  }

  /** One for modules of the same file with another key; the two share what was checked last. */
  ModuleDecryptor withKey(byte[] key) {
    return new ModuleDecryptor(key, plain);
  }

  /** The content of the module that was checked last. */
  private static final class Plain {
    private byte[] bytes = new byte[SMALLEST_BUFFER];
  }

  /** Parses what a module holds. */
  @FunctionalInterface
  interface Parser<T> {
    T parse(InputStream plain) throws IOException;
  }

  /** The length in bytes of the module that starts there, its length field included. */
  static long moduleLength(byte[] bytes, int at) {
    int rest = ByteBuffer.wrap(bytes, at, LENGTH).order(ByteOrder.LITTLE_ENDIAN).getInt();
    return LENGTH + Integer.toUnsignedLong(rest);
  }

  /**
   * Checks a module.
   *
   * @param name what to call it in errors
   * @param bytes has the module
   * @param at where it starts
   * @param length how many bytes it has to have, its length field included
   * @return the length in bytes of its content, which {@link #parse} can read
   * @throws TamperedException when it is not what was written
   */
  int check(String name, byte[] bytes, int at, int length, byte[] aad) {
    if (length < OVERHEAD || moduleLength(bytes, at) != length) {
      throw NotAsWritten.because(
          String.format("%s does not have the %d bytes that it should have", name, length));
    }

    if (plain.bytes.length < length) {
      plain.bytes = new byte[length];
    }

    try {
      return decryptor.decrypt(bytes, at + LENGTH, length - LENGTH, plain.bytes, 0, aad);
    } catch (RuntimeException e) {
      throw NotAsWritten.wrongTag(name, e);
    }
  }

  /**
   * Checks the signature of a plaintext footer: it is encrypted again, with the same nonce, and the
   * tag compared (Parquet modular encryption, section 5.3).
   *
   * @param key the footer's
   * @param bytes has the footer
   * @param length of the footer, without the signature, which follows
   * @throws TamperedException when it is not what was signed
   */
  static void checkSignature(byte[] key, byte[] bytes, int length, byte[] aad) {
    byte[] again;
    byte[] nonce = Arrays.copyOfRange(bytes, length, length + Ciphers.NONCE_LENGTH);
    byte[] footer = Arrays.copyOf(bytes, length);
    try {
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(
          Cipher.ENCRYPT_MODE,
          new SecretKeySpec(key, "AES"),
          new GCMParameterSpec(Byte.SIZE * Ciphers.GCM_TAG_LENGTH, nonce));
      cipher.updateAAD(aad);
      again = cipher.doFinal(footer);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e); // every Java has it
    }

    if (!MessageDigest.isEqual(
        Arrays.copyOfRange(again, length, again.length),
        Arrays.copyOfRange(bytes, length + Ciphers.NONCE_LENGTH, bytes.length))) {
      throw NotAsWritten.because(
          "the footer does not have the signature of its key: it was changed, or comes from"
              + " elsewhere");
    }
  }

  /** Parses the content of the module that was checked last. */
  <T> T parse(String name, int length, Parser<T> parser) {
    try {
      return parser.parse(new ByteArrayInputStream(plain.bytes, 0, length));
    } catch (IOException | RuntimeException e) { // Thrift's generated code throws both
      throw NotAsWritten.unknown(name + " does not parse: " + e.getMessage(), e);
    }
  }
}
