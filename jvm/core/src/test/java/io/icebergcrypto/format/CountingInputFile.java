package io.icebergcrypto.format;

import io.icebergcrypto.testing.BytesFile;
import java.io.IOException;
import org.apache.iceberg.io.SeekableInputStream;

/** A file in memory that keeps count of what is read. */
final class CountingInputFile extends BytesFile {
  private long bytesRead;
  private int open;

  CountingInputFile(byte[] bytes) {
    super(bytes);
  }

  CountingInputFile(byte[] bytes, long claimedLength) {
    super(bytes, claimedLength);
  }

  long bytesRead() {
    return bytesRead;
  }

  boolean allClosed() {
    return open == 0;
  }

  @Override
  public SeekableInputStream newStream() {
    open++;
    return new Stream() {
      @Override
      public int read(byte[] target, int offset, int count) throws IOException {
        int got = super.read(target, offset, count);
        bytesRead += Math.max(got, 0);
        return got;
      }

      @Override
      public void close() {
        open--;
      }
    };
  }
}
