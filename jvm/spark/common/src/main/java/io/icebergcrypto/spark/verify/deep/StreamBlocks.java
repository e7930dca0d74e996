package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Ags1Layout;
import java.io.IOException;
import org.apache.iceberg.io.SeekableInputStream;

/** Checks every block of an AES GCM stream, with Iceberg's own reader of such streams. */
public final class StreamBlocks {
  private StreamBlocks() {}

  /**
   * Reads a stream from start to end, block by block, and keeps none.
   *
   * @param file the stream as stored, of the length that its key metadata gives
   * @param layout its blocks, by its header and that length
   * @throws TamperedException when a block is not what was written; blocks count from 0
   */
  public static void check(StoredFile file, FileKey key, Ags1Layout layout) {
    try (SeekableInputStream in = key.decrypted(file).newStream()) {
      for (long block = 0; block < layout.blockCount(); block++) {
        in.seek(block * layout.blockSize());
        check(in, block, layout.blockCount());
      }
    } catch (IOException e) { // Iceberg's: the storage's are StorageException
      throw NotAsWritten.unknown("it is not an AES GCM stream: " + e.getMessage(), e);
    }
  }

  private static void check(SeekableInputStream in, long block, long count) throws IOException {
    try {
      in.read(); // for one byte, the whole block is read and decrypted
    } catch (StoredFile.StorageException | TamperedException e) {
      throw e;
    } catch (RuntimeException e) {
      throw NotAsWritten.wrongTag(String.format("block %d of %d", block, count), e);
    }
  }
}
