package io.icebergcrypto.testing;

import java.io.IOException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * A file in an object store: reads may give less than was asked for, positions may be anywhere, and
 * its length may be a lie.
 */
public class BytesFile implements InputFile {
  protected final byte[] bytes;
  private final long claimedLength;

  public BytesFile(byte[] bytes) {
    this(bytes, bytes.length);
  }

  public BytesFile(byte[] bytes, long claimedLength) {
    this.bytes = bytes;
    this.claimedLength = claimedLength;
  }

  @Override
  public long getLength() {
    return claimedLength;
  }

  @Override
  public SeekableInputStream newStream() {
    return new Stream();
  }

  @Override
  public String location() {
    return "s3://bucket/db/t/file";
  }

  @Override
  public boolean exists() {
    return true;
  }

  /** A stream of it, for a class that does something else at some of its calls. */
  public class Stream extends SeekableInputStream {
    protected long position = 0;

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public void seek(long newPosition) throws IOException {
      if (newPosition < 0) {
        throw new IOException("negative position " + newPosition);
      }

      this.position = newPosition;
    }

    @Override
    public int read() throws IOException {
      byte[] single = new byte[1];
      return read(single, 0, 1) < 0 ? -1 : single[0] & 0xff;
    }

    @Override
    public int read(byte[] target, int offset, int count) throws IOException {
      if (position >= bytes.length) {
        return count > 0 ? -1 : 0;
      }

      // less than asked for: callers have to cope with short reads
      int got = (int) Math.min((count + 1) / 2, bytes.length - position);
      System.arraycopy(bytes, (int) position, target, offset, got);
      position += got;
      return got;
    }
  }
}
