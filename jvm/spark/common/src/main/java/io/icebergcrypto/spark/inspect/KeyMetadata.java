package io.icebergcrypto.spark.inspect;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;

/**
 * Writes Iceberg's standard key metadata (Iceberg specification, version 1): its class is not
 * public. The version, then Avro: the DEK, a union of null and the AAD prefix, a union of null and
 * the file's length.
 */
final class KeyMetadata {
  private static final int VERSION = 1;
  private static final int NULL = 0;
  private static final int PRESENT = 2; // 1 in Avro's zigzag numbers

  private KeyMetadata() {}

  /** Key metadata without a length. */
  static ByteBuffer of(byte[] key, byte[] aadPrefix) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(VERSION);
    write(key, out);
    out.write(PRESENT);
    write(aadPrefix, out);
    out.write(NULL);
    return ByteBuffer.wrap(out.toByteArray());
  }

  private static void write(byte[] bytes, ByteArrayOutputStream out) {
    int number = bytes.length << 1;
    while (number > 0x7f) {
      out.write(number & 0x7f | 0x80);
      number >>>= 7;
    }

    out.write(number);
    out.writeBytes(bytes);
  }
}
