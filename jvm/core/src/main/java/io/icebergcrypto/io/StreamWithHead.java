package io.icebergcrypto.io;

import java.io.IOException;
import org.apache.iceberg.io.SeekableInputStream;

/** A file whose first bytes were read and looked at: it gives those, and the storage the rest. */
final class StreamWithHead extends SeekableInputStream {
  private final byte[] head;
  private final SeekableInputStream rest;
  private long position = 0;

  /**
   * Puts the bytes back.
   *
   * @param head the file's first bytes
   * @param rest the file's stream, which they were read from
   */
  StreamWithHead(byte[] head, SeekableInputStream rest) {
    this.head = head;
    this.rest = rest;
  }

  @Override
  public int read() throws IOException {
    byte[] single = new byte[1];
    return read(single, 0, 1) < 0 ? -1 : single[0] & 0xff;
  }

  @Override
  public int read(byte[] bytes, int offset, int count) throws IOException {
    int got;
    if (position < head.length) {
      got = (int) Math.min(count, head.length - position);
      System.arraycopy(head, (int) position, bytes, offset, got);
    } else {
      if (rest.getPos() != position) {
        rest.seek(position);
      }

      got = rest.read(bytes, offset, count);
    }

    position += Math.max(got, 0);
    return got;
  }

  @Override
  public void seek(long newPosition) throws IOException {
    if (newPosition >= head.length) {
      rest.seek(newPosition);
    } else if (newPosition < 0) {
      throw new IOException("Cannot seek to " + newPosition);
    }

    this.position = newPosition;
  }

  @Override
  public long getPos() {
    return position;
  }

  @Override
  public void close() throws IOException {
    rest.close();
  }
}
