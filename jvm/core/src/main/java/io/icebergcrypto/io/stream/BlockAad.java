package io.icebergcrypto.io.stream;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.iceberg.util.ByteBuffers;

/**
 * The additional authenticated data of a stream's blocks: the file's AAD prefix, and the block's
 * number as a little-endian 32-bit integer (AES GCM Stream spec, "Additional Authenticated Data").
 */
public final class BlockAad {
  private final byte[] prefix;

  /**
   * That of one file.
   *
   * @param prefix may be null: none
   */
  public BlockAad(ByteBuffer prefix) {
    this.prefix = prefix == null ? new byte[0] : ByteBuffers.toByteArray(prefix);
  }

  /** That of a block; the first one is 0. */
  public byte[] of(long block) {
    return ByteBuffer.allocate(prefix.length + Integer.BYTES)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(prefix)
        .putInt(Math.toIntExact(block))
        .array();
  }
}
