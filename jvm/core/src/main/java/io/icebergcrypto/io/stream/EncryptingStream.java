package io.icebergcrypto.io.stream;

import io.icebergcrypto.format.Ags1Layout;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.LongConsumer;
import org.apache.iceberg.encryption.Ciphers;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.util.ByteBuffers;

/**
 * Encrypts what is written to it as an AES GCM stream, with a random nonce for each block. Its
 * buffers grow with the file, up to a block.
 */
public final class EncryptingStream extends PositionOutputStream {
  private static final int BLOCK = Ags1Layout.ICEBERG_BLOCK_SIZE;
  private static final int FIRST_BUFFER = 8 << 10;
  private static final int GROWTH = 4;

  private static final byte[] HEADER =
      ByteBuffer.allocate(Ags1Layout.HEADER_LENGTH)
          .order(ByteOrder.LITTLE_ENDIAN)
          .put(Ciphers.GCM_STREAM_MAGIC_STRING.getBytes(StandardCharsets.US_ASCII))
          .putInt(BLOCK)
          .array();

  private final PositionOutputStream stored;
  private final LongConsumer whenWritten;
  private final BlockAad aad;
  private final Ciphers.AesGcmEncryptor encryptor;

  private byte[] block = new byte[FIRST_BUFFER];
  private int filled = 0; // bytes in block
  private byte[] encrypted = new byte[0];
  private long blocks = 0; // that were written
  private long position = 0;
  private boolean closed = false;

  /**
   * Writes nothing yet.
   *
   * @param stored takes the file's bytes as they are to be stored; it is closed with this stream
   * @param keyMetadata the file's
   * @param whenWritten takes the length in bytes of the whole file, once it is stored
   */
  public EncryptingStream(
      PositionOutputStream stored,
      NativeEncryptionKeyMetadata keyMetadata,
      LongConsumer whenWritten) {
    this.stored = stored;
    this.whenWritten = whenWritten;
    this.aad = new BlockAad(keyMetadata.aadPrefix());
    this.encryptor =
        new Ciphers.AesGcmEncryptor(ByteBuffers.toByteArray(keyMetadata.encryptionKey()));
  }

  @Override
  public void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int count) throws IOException {
    Objects.checkFromIndexSize(offset, count, bytes.length);
    if (closed) {
      throw new IOException("The stream is closed");
    }

    int done = 0;
    while (done < count) {
      int more = Math.min(BLOCK - filled, count - done);
      if (more == BLOCK) {
        writeBlock(bytes, offset + done, BLOCK);
      } else {
        reserve(filled + more);
        System.arraycopy(bytes, offset + done, block, filled, more);
        this.filled += more;
        if (filled == BLOCK) {
          this.filled = 0;
          writeBlock(block, 0, BLOCK);
        }
      }

      done += more;
      this.position += more;
    }
  }

  private void reserve(int length) {
    if (length > block.length) {
      this.block = Arrays.copyOf(block, Math.min(BLOCK, Math.max(length, GROWTH * block.length)));
    }
  }

  private void writeBlock(byte[] bytes, int offset, int length) throws IOException {
    if (blocks == Integer.MAX_VALUE) {
      throw new IOException("A stream has no more than " + Integer.MAX_VALUE + " blocks");
    }

    if (blocks == 0) {
      stored.write(HEADER);
    }

    if (encrypted.length < length + Ags1Layout.BLOCK_OVERHEAD) {
      this.encrypted = new byte[length + Ags1Layout.BLOCK_OVERHEAD];
    }

    long index = blocks++;
    int written = encryptor.encrypt(bytes, offset, length, encrypted, 0, aad.of(index));
    stored.write(encrypted, 0, written);
    FileMetrics.streamEncrypted(length);
  }

  /** How many bytes of plaintext were written. */
  @Override
  public long getPos() {
    return position;
  }

  @Override
  public long storedLength() throws IOException {
    return stored.storedLength();
  }

  @Override
  public void flush() throws IOException {
    stored.flush();
  }

  /** Writes the last block; that of an empty file is empty, so that it too is authenticated. */
  @Override
  public void close() throws IOException {
    if (closed) {
      return;
    }

    this.closed = true;
    try (stored) { // closed even if the last block fails
      if (filled > 0 || blocks == 0) {
        writeBlock(block, 0, filled);
      }
    }

    whenWritten.accept(Ags1Layout.storedLength(position));
  }
}
