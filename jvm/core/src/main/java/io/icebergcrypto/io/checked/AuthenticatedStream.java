package io.icebergcrypto.io.checked;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.stream.BlockAad;
import io.icebergcrypto.io.stream.FileMetrics;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import org.apache.iceberg.encryption.Ciphers;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.util.ByteBuffers;

/**
 * The plaintext of an AES GCM stream. Only the blocks with the bytes that are asked for are read,
 * and each is authenticated before a byte of it is returned. The header is checked with the first
 * block: it says nothing that the tags of blocks do not vouch for.
 *
 * <p>It takes no more memory than the file's blocks are long. A whole block goes right into the
 * caller's array.
 *
 * <p>What a read throws names the file, and is no EOFException, which Avro takes for the end of the
 * data. After the first error the stream gives no more bytes.
 */
public final class AuthenticatedStream extends SeekableInputStream implements RangeReadable {
  private static final int BLOCK = Ags1Layout.ICEBERG_BLOCK_SIZE;
  private static final int STORED_BLOCK = BLOCK + Ags1Layout.BLOCK_OVERHEAD;

  /** As many blocks of a range are asked for at once. */
  private static final int AT_ONCE = 8;

  private final SeekableInputStream stored;
  private final Ags1Layout layout;
  private final ExpectedFile file;
  private final BlockAad aad;
  private final Ciphers.AesGcmDecryptor decryptor;

  private byte[] encrypted = new byte[0];
  private byte[] block = new byte[0];
  private long blockIndex = -1; // which one is decrypted in block
  private long position = 0;
  private boolean moved = false; // a range was read: nobody knows where stored is
  private IcebergCryptoException failed;

  /**
   * Reads nothing yet.
   *
   * @param stored the file's bytes as they are stored; it is closed with this stream
   * @param layout the file's, by the length that its key metadata gives, with Iceberg's block size
   * @param keyMetadata the file's
   * @param file what errors name
   */
  public AuthenticatedStream(
      SeekableInputStream stored,
      Ags1Layout layout,
      NativeEncryptionKeyMetadata keyMetadata,
      ExpectedFile file) {
    this.stored = stored;
    this.layout = layout;
    this.file = file;
    this.aad = new BlockAad(keyMetadata.aadPrefix());
    this.decryptor =
        new Ciphers.AesGcmDecryptor(ByteBuffers.toByteArray(keyMetadata.encryptionKey()));
  }

  @Override
  public int read() throws IOException {
    byte[] single = new byte[1];
    return read(single, 0, 1) < 0 ? -1 : single[0] & 0xff;
  }

  /**
   * Reads as many bytes as there are, up to a number. An exception of any other type is the
   * storage's, and says nothing about the bytes.
   *
   * @throws io.icebergcrypto.TamperedException when the file does not start with a stream's header,
   *     or a tag is wrong
   * @throws io.icebergcrypto.NotSupportedException when it starts with the header of a stream that
   *     this cannot read
   * @throws io.icebergcrypto.IcebergCryptoException when the storage ends before the file does
   */
  @Override
  public int read(byte[] bytes, int offset, int count) throws IOException {
    checkFailed();
    Objects.checkFromIndexSize(offset, count, bytes.length);
    if (count == 0) {
      return 0;
    }

    int wanted = (int) Math.min(count, layout.plaintextLength() - position);
    if (wanted <= 0) {
      if (layout.plaintextLength() == 0 && blockIndex < 0) {
        copy(0, bytes, offset, 0, false); // nothing to return, but a tag to check
      }

      return -1;
    }

    copy(position, bytes, offset, wanted, false);
    this.position += wanted;
    return wanted;
  }

  /**
   * Reads a range, regardless of the stream's position, which stays. The last block that was read
   * is kept, so small ranges in one block read it once.
   *
   * @throws IcebergCryptoException also when the plaintext ends before
   */
  @Override
  public void readFully(long from, byte[] bytes, int offset, int count) throws IOException {
    checkFailed();
    Objects.checkFromIndexSize(offset, count, bytes.length);
    if (from < 0 || from > layout.plaintextLength() - count) {
      String problem =
          String.format(
              "Cannot read %d bytes from %d: the content has %d",
              count, from, layout.plaintextLength());
      this.failed = file.unreadable(new EOFException(problem));
      throw failed;
    }

    if (count > 0) {
      copy(from, bytes, offset, count, true);
    }
  }

  @Override
  public int readTail(byte[] bytes, int offset, int count) throws IOException {
    int wanted = (int) Math.min(count, layout.plaintextLength());
    readFully(layout.plaintextLength() - wanted, bytes, offset, wanted);
    return wanted;
  }

  /**
   * Scans are split by the stored length, which exceeds the plaintext's a little. A split that
   * starts between the two has nothing to read; Iceberg's own stream fails there.
   */
  @Override
  public void seek(long newPosition) throws IOException {
    checkFailed();
    if (newPosition < 0) {
      throw new IOException("Invalid position: " + newPosition);
    } else if (newPosition > file.length()) {
      throw new EOFException(
          "Invalid position " + newPosition + " in content of " + layout.plaintextLength());
    }

    this.position = Math.min(newPosition, layout.plaintextLength());
  }

  @Override
  public long skip(long count) {
    checkFailed();
    long skipped = Math.max(0, Math.min(count, layout.plaintextLength() - position));
    this.position += skipped;
    return skipped;
  }

  @Override
  public long getPos() {
    return position;
  }

  @Override
  public int available() {
    return (int) Math.min(Integer.MAX_VALUE, layout.plaintextLength() - position);
  }

  @Override
  public void close() throws IOException {
    stored.close();
  }

  private void checkFailed() {
    if (failed != null) {
      throw failed;
    }
  }

  /** Copies bytes that are there; of no bytes, the block is still checked. */
  private void copy(long from, byte[] target, int offset, int count, boolean byRange)
      throws IOException {
    try {
      copyBlocks(from, target, offset, count, byRange);
    } catch (IcebergCryptoException e) {
      this.failed = e;
      throw e;
    } catch (EOFException e) { // not the storage's: see LengthCheckedStream
      this.failed = file.unreadable(e);
      throw failed;
    }
  }

  private void copyBlocks(long from, byte[] target, int offset, int count, boolean byRange)
      throws IOException {
    long last = (from + Math.max(1, count) - 1) / BLOCK;
    long fetched = -1; // the first block behind those in encrypted
    int at = 0; // where the next one starts in it
    int done = 0;
    for (long index = from / BLOCK; index <= last; index++) {
      int start = (int) (from + done - index * BLOCK);
      int length = plainLength(index);
      int wanted = Math.min(count - done, length - start);
      if (index != blockIndex) {
        if (index >= fetched) {
          int blocks = byRange ? (int) Math.min(AT_ONCE, last - index + 1) : 1;
          at = fetch(index, blocks, byRange);
          fetched = index + blocks;
        }

        if (wanted == length && length > 0) {
          decrypt(index, at, target, offset + done);
        } else {
          keep(index, at);
        }
      }

      if (index == blockIndex) {
        System.arraycopy(block, start, target, offset + done, wanted);
      }

      at += length + Ags1Layout.BLOCK_OVERHEAD;
      done += wanted;
    }
  }

  /**
   * Reads blocks as they are stored, and the header with the first one.
   *
   * @return where they start in what was read
   */
  private int fetch(long index, int blocks, boolean byRange) throws IOException {
    int header = index == 0 ? Ags1Layout.HEADER_LENGTH : 0;
    int length = header + (blocks - 1) * STORED_BLOCK;
    length += plainLength(index + blocks - 1) + Ags1Layout.BLOCK_OVERHEAD;
    if (encrypted.length < length) {
      this.encrypted = new byte[length];
    }

    long from = index == 0 ? 0 : Ags1Layout.HEADER_LENGTH + index * STORED_BLOCK;
    if (byRange && stored instanceof RangeReadable ranges) {
      this.moved = true;
      ranges.readFully(from, encrypted, 0, length);
      checkHeader(index);
    } else {
      if (moved || stored.getPos() != from) {
        stored.seek(from);
        this.moved = false;
      }

      // first, as a file of another kind may be shorter, and its header tells more
      IOUtil.readFully(stored, encrypted, 0, header);
      checkHeader(index);
      IOUtil.readFully(stored, encrypted, header, length - header);
    }

    return header;
  }

  private void checkHeader(long index) {
    if (index > 0) {
      return; // it was not read
    }

    FileMagic magic = FileMagic.of(encrypted);
    if (magic == FileMagic.LATER) {
      throw file.ofOtherVersion("it starts with the magic of a later version than AGS1");
    } else if (magic != FileMagic.AGS1) {
      throw file.malformed("Invalid GCM stream: it does not start with AGS1");
    }

    int size = ByteBuffer.wrap(encrypted, 4, 4).order(ByteOrder.LITTLE_ENDIAN).getInt();
    if (size != BLOCK) {
      throw file.ofOtherVersion(
          String.format("its header gives blocks of %d bytes, expected %d", size, BLOCK));
    }
  }

  private void keep(long index, int at) {
    int length = plainLength(index);
    if (block.length < length) {
      this.block = new byte[length];
    }

    this.blockIndex = -1; // until it is whole
    decrypt(index, at, block, 0);
    this.blockIndex = index;
  }

  private void decrypt(long index, int at, byte[] target, int offset) {
    int length = plainLength(index) + Ags1Layout.BLOCK_OVERHEAD;
    try {
      int done = decryptor.decrypt(encrypted, at, length, target, offset, aad.of(index));
      FileMetrics.streamDecrypted(done);
    } catch (RuntimeException e) {
      throw Evidence.isWrongTag(e) ? file.wrongTag(e) : e;
    }
  }

  private int plainLength(long index) {
    return (int) Math.min(BLOCK, layout.plaintextLength() - index * BLOCK);
  }
}
