package io.icebergcrypto.format;

import io.icebergcrypto.TamperedException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * How an AES GCM stream is laid out: Iceberg's {@code AGS1}, used for manifests, manifest lists and
 * Avro and Puffin files (AES GCM Stream spec, "File structure").
 *
 * <p>The file is {@code "AGS1"}, the block length as a little-endian 32-bit integer, then blocks of
 * nonce (12 bytes), ciphertext and tag (16 bytes). The block length counts plaintext bytes; every
 * block but the last has exactly that many, the last has from one byte up to that many.
 *
 * <p>The empty plaintext is the one exception to "the last block is not empty". Iceberg's Java and
 * Rust writers both write it as a single block of no ciphertext, so that it too is authenticated.
 * Such a file, of exactly {@value #MIN_FILE_LENGTH} bytes, is accepted: one block, plaintext length
 * 0. An empty block behind full ones, which no writer makes, is refused, and so is a bare header.
 *
 * <p>The layout follows from the header and a file length, and neither is authenticated. A file cut
 * off exactly behind a block looks whole here: only comparing its length to the one in the file's
 * key metadata tells (spec, "File length").
 *
 * @param blockSize plaintext bytes of a full block, from 1 to {@value #MAX_BLOCK_SIZE}. The spec
 *     leaves it free; Iceberg 1.12 writes and reads {@value #ICEBERG_BLOCK_SIZE} and nothing else
 * @param blockCount number of blocks, from 1 to {@link Integer#MAX_VALUE}
 * @param plaintextLength length of the content in bytes, from 0
 */
public record Ags1Layout(int blockSize, long blockCount, long plaintextLength) {
  /** Bytes in front of the first block: the magic and the block length. */
  public static final int HEADER_LENGTH = 8;

  /** Bytes that encryption adds to every block: a nonce of 12 and a tag of 16. */
  public static final int BLOCK_OVERHEAD = 28;

  /** Length in bytes of the shortest file, that of the empty plaintext. */
  static final int MIN_FILE_LENGTH = HEADER_LENGTH + BLOCK_OVERHEAD;

  /** The block size in bytes that Iceberg's writers use. */
  public static final int ICEBERG_BLOCK_SIZE = 1 << 20;

  /** The largest block size in bytes that is accepted; a reader holds one block in memory. */
  static final int MAX_BLOCK_SIZE = 64 << 20;

  /**
   * Computes the layout of a file.
   *
   * @param header the file's first {@value #HEADER_LENGTH} bytes, or more; fewer only if the file
   *     has no more
   * @param fileLength the file's length in bytes; preferably the one in its key metadata
   * @param path the file's location, for the error
   * @throws TamperedException if the header is not an AES GCM stream's, or no sequence of blocks
   *     has this length
   */
  static Ags1Layout parse(byte[] header, long fileLength, String path) {
    if (header.length < HEADER_LENGTH || fileLength < MIN_FILE_LENGTH) {
      throw tooShort(path, fileLength);
    }
    if (FileMagic.of(header) != FileMagic.AGS1) {
      throw tampered(path, fileLength, "expected it to start with AGS1");
    }
    int blockSize = ByteBuffer.wrap(header, 4, 4).order(ByteOrder.LITTLE_ENDIAN).getInt();
    if (blockSize <= 0 || blockSize > MAX_BLOCK_SIZE) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "its header gives a block length of %d bytes, expected 1 to %d (Iceberg writes %d)",
              Integer.toUnsignedLong(blockSize), MAX_BLOCK_SIZE, ICEBERG_BLOCK_SIZE));
    }
    return ofBlocks(blockSize, fileLength, path);
  }

  /**
   * Computes the layout of a file that has Iceberg's block size.
   *
   * @param fileLength the file's length in bytes, as its key metadata gives it
   * @param path the file's location, for the error
   * @throws TamperedException if no sequence of blocks has this length
   */
  public static Ags1Layout ofLength(long fileLength, String path) {
    if (fileLength < MIN_FILE_LENGTH) {
      throw tooShort(path, fileLength);
    }
    return ofBlocks(ICEBERG_BLOCK_SIZE, fileLength, path);
  }

  /**
   * How long a file is that has Iceberg's block size.
   *
   * @param plaintextLength the length of its content in bytes, from 0
   */
  public static long storedLength(long plaintextLength) {
    long blocks = Math.max(1, (plaintextLength + ICEBERG_BLOCK_SIZE - 1) / ICEBERG_BLOCK_SIZE);
    return HEADER_LENGTH + plaintextLength + blocks * BLOCK_OVERHEAD;
  }

  /**
   * Whether the last block is a full one. Only the last may be shorter, so a stream that ends with
   * an authentic block which is shorter is whole.
   */
  public boolean endsWithFullBlock() {
    return plaintextLength > 0 && plaintextLength % blockSize == 0;
  }

  private static Ags1Layout ofBlocks(int blockSize, long fileLength, String path) {
    long cipherBlock = (long) blockSize + BLOCK_OVERHEAD;
    long body = fileLength - HEADER_LENGTH;
    long full = body / cipherBlock;
    long rest = body % cipherBlock;
    boolean emptyPlaintext = body == BLOCK_OVERHEAD;
    if (rest != 0 && rest <= BLOCK_OVERHEAD && !emptyPlaintext) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "after %d full blocks of %d bytes there are %d bytes, expected none or more than %d"
                  + " (nonce, tag and at least one byte)",
              full, cipherBlock, rest, BLOCK_OVERHEAD));
    }
    long count = rest == 0 ? full : full + 1;
    if (count > Integer.MAX_VALUE) {
      throw tampered(
          path,
          fileLength,
          String.format(
              "it would have %d blocks of %d bytes, expected no more than %d",
              count, blockSize, Integer.MAX_VALUE));
    }
    return new Ags1Layout(blockSize, count, body - count * BLOCK_OVERHEAD);
  }

  private static TamperedException tooShort(String path, long fileLength) {
    return tampered(
        path,
        fileLength,
        String.format(
            "expected at least %d bytes, a header of %d and one block of %d or more",
            MIN_FILE_LENGTH, HEADER_LENGTH, BLOCK_OVERHEAD));
  }

  private static TamperedException tampered(String path, long fileLength, String what) {
    return new TamperedException(
        String.format("Not a whole AES GCM stream: %s, %d bytes long: %s", path, fileLength, what),
        FileInspector.DAMAGED_HINT);
  }
}
