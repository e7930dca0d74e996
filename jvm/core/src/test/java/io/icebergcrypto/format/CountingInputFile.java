package io.icebergcrypto.format;

import java.io.IOException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/** A file in memory that keeps count of what is read, and may lie about its length. */
final class CountingInputFile implements InputFile {
  private final byte[] bytes;
  private final long claimedLength;
  private long bytesRead;
  private int opened;
  private int closed;

  CountingInputFile(byte[] bytes) {
    this(bytes, bytes.length);
  }

  CountingInputFile(byte[] bytes, long claimedLength) {
    this.bytes = bytes;
    this.claimedLength = claimedLength;
  }

  long bytesRead() {
    return bytesRead;
  }

  boolean allClosed() {
    return opened == closed;
  }

  @Override
  public long getLength() {
    return claimedLength;
  }

  @Override
  public SeekableInputStream newStream() {
    opened++;
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

  private final class Stream extends SeekableInputStream {
    private long position;

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public void seek(long newPos) throws IOException {
      if (newPos < 0) {
        throw new IOException("negative position " + newPos);
      }
      position = newPos;
    }

    @Override
    public int read() {
      if (position >= bytes.length) {
        return -1;
      }
      bytesRead++;
      return bytes[(int) position++] & 0xff;
    }

    @Override
    public int read(byte[] target, int offset, int length) {
      if (length == 0) {
        return 0;
      }
      if (position >= bytes.length) {
        return -1;
      }
      // One byte less than asked for: callers have to cope with short reads.
      int count = (int) Math.min(Math.max(1, length - 1), bytes.length - position);
      System.arraycopy(bytes, (int) position, target, offset, count);
      position += count;
      bytesRead += count;
      return count;
    }

    @Override
    public void close() {
      closed++;
    }
  }
}
