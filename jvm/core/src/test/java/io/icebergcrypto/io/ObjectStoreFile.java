package io.icebergcrypto.io;

import io.icebergcrypto.testing.BytesFile;
import java.io.EOFException;
import java.io.IOException;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * A file in an object store, as S3FileIO has one: its length is what a manifest says and never
 * asked for, a read behind its end is refused with 416, and a stream counts the byte that was not
 * there.
 */
final class ObjectStoreFile extends BytesFile {
  private final boolean ranges;
  private int opened = 0;
  private RuntimeException failure = null;
  private boolean endedEarly = false;
  private boolean saysItIsWhole = false;

  ObjectStoreFile(byte[] bytes, boolean ranges) {
    super(bytes);
    this.ranges = ranges;
  }

  /** How often it was opened; every other request fails. */
  int opened() {
    return opened;
  }

  /** Has all reads fail from now on. */
  void failWith(RuntimeException error) {
    this.failure = error;
  }

  /** Only once a read has ended early. */
  @Override
  public long getLength() {
    if (!endedEarly) {
      throw new AssertionError("a request for the length");
    }

    return saysItIsWhole ? Long.MAX_VALUE : bytes.length;
  }

  /** Its length does not say why reads end. */
  void sayThatItIsWhole() {
    this.saysItIsWhole = true;
  }

  @Override
  public boolean exists() {
    throw new AssertionError("a request for the file's existence");
  }

  @Override
  public SeekableInputStream newStream() {
    this.opened++;
    return ranges ? new RangeStream() : new ObjectStream();
  }

  private class ObjectStream extends Stream {
    @Override
    public int read() {
      checkRange(position);
      int at = (int) position++;
      if (at < bytes.length) {
        return bytes[at] & 0xff;
      }

      endedEarly = true;
      return -1;
    }

    @Override
    public int read(byte[] buffer, int offset, int count) {
      checkRange(position);
      int got = (int) Math.min(Math.min(count, 100_000), bytes.length - position);
      if (got <= 0) {
        endedEarly = true;
        return -1;
      }

      System.arraycopy(bytes, (int) position, buffer, offset, got);
      position += got;
      return got;
    }

    final void checkRange(long from) {
      endedEarly |= failure != null || from > bytes.length;
      if (failure != null) {
        throw failure;
      }

      if (from > bytes.length) {
        throw new IllegalStateException(
            "The requested range is not satisfiable (Service: S3, Status Code: 416)");
      }
    }
  }

  private final class RangeStream extends ObjectStream implements RangeReadable {
    @Override
    public void readFully(long from, byte[] buffer, int offset, int count) throws IOException {
      checkRange(from);
      if (from + count > bytes.length) {
        endedEarly = true;
        throw new EOFException("Reached the end of stream");
      }

      System.arraycopy(bytes, (int) from, buffer, offset, count);
    }

    @Override
    public int readTail(byte[] buffer, int offset, int count) {
      throw new AssertionError("the end that storage has");
    }
  }
}
