package io.icebergcrypto.io.checked;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Where an Avro file ends. Its header and each of its blocks end with the file's sync marker (Avro
 * specification, "Object Container Files"), 16 random bytes. Avro's reader takes a block that is
 * cut off for the end of the file.
 */
record AvroEnd(SeekableInputStream in, long length) {
  private static final byte[] MAGIC = "Obj\1".getBytes(StandardCharsets.US_ASCII);
  private static final int SYNC = 16;

  /**
   * Whether content ends as an Avro file does. Any that is not Avro does: Puffin's and Parquet's
   * readers begin at the end, and miss it.
   *
   * @param in the content, decrypted
   * @param length of the content in bytes
   */
  static boolean isWhole(SeekableInputStream in, long length) throws IOException {
    return new AvroEnd(in, length).isWhole();
  }

  private boolean isWhole() throws IOException {
    if (length < MAGIC.length || !Arrays.equals(bytes(MAGIC.length), MAGIC)) {
      return true;
    }

    for (long count = number(); count != 0; count = number()) { // a map: blocks of entries
      if (count < 0) {
        number(); // the block's length in bytes
      }

      for (long entry = 0; entry < Math.abs(count); entry++) {
        skip(number());
        skip(number());
      }
    }

    byte[] sync = bytes(SYNC);
    in.seek(length - SYNC);
    return Arrays.equals(bytes(SYNC), sync);
  }

  private byte[] bytes(int count) throws IOException {
    byte[] bytes = new byte[count];
    IOUtil.readFully(in, bytes, 0, count);
    return bytes;
  }

  private void skip(long count) throws IOException {
    if (count < 0) {
      throw new IOException("Invalid Avro header: a length of " + count);
    }

    in.seek(in.getPos() + count);
  }

  /** Avro's zigzag number. */
  private long number() throws IOException {
    long value = 0;
    for (int shift = 0; shift < Long.SIZE; shift += 7) {
      int next = bytes(1)[0];
      value |= (next & 0x7fL) << shift;
      if (next >= 0) {
        return value >>> 1 ^ -(value & 1);
      }
    }

    throw new IOException("Invalid Avro header: a number that is too long");
  }
}
