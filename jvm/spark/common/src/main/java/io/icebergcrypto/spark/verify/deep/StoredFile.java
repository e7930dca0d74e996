package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.util.function.Supplier;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * A file as it is stored, of which each byte is read once, from one stream: a small file as a
 * whole, another one from start to end, after its footer. All streams of this file share what was
 * read. For one thread.
 */
public final class StoredFile implements InputFile, AutoCloseable {
  /** Up to this length in bytes, a file is read as a whole with its first byte. */
  static final int WHOLE = 8 << 20;

  /** How many bytes at the end of a file are kept at most: a footer that Parquet can read. */
  static final int MAX_END = 100 << 20;

  private static final int END = 64 << 10;

  /** How much is read at least; more would be copied again when a page crosses the end of it. */
  private static final int WINDOW = 128 << 10;

  private static final String CUT_HINT =
      "The file was replaced while it was read, or its storage failed. Check again.";

  private final InputFile stored;
  private final boolean whole;
  private long length = -1;
  private SeekableInputStream in;
  private long bytesRead;

  // bytes of the file from windowStart to windowEnd, at the start of the array
  private byte[] window = new byte[0];
  private long windowStart;
  private long windowEnd;
  // the file's bytes from endStart on
  private byte[] end = new byte[0];
  private long endStart = Long.MAX_VALUE;

  /**
   * Opens nothing yet.
   *
   * @param stored the file as its storage has it, not decrypted
   * @param whole whether all of it will be read
   */
  public StoredFile(InputFile stored, boolean whole) {
    this.stored = stored;
    this.whole = whole;
  }

  /** How many bytes the storage was asked for. */
  public long bytesRead() {
    return bytesRead;
  }

  @Override
  public long getLength() {
    if (length < 0) {
      this.length = fromStorage(stored::getLength);
    }

    return length;
  }

  /** A stream of what is stored. Closing it leaves the file open. */
  @Override
  public SeekableInputStream newStream() {
    return new View();
  }

  @Override
  public String location() {
    return stored.location();
  }

  @Override
  public boolean exists() {
    return fromStorage(stored::exists);
  }

  @Override
  public void close() {
    if (in != null) {
      try {
        in.close();
      } catch (IOException | RuntimeException e) {
        // all that was asked for was read
      }
    }
  }

  /**
   * Makes bytes of the file available in {@link #window()}, and with them some that follow. Goes
   * forward only.
   *
   * @param position where they are in the file, not before an earlier position
   * @param count how many; they are in the file, and there is memory for them
   * @return where they are in the window
   */
  int require(long position, int count) {
    if (position < windowStart || position > windowEnd) {
      throw new IllegalArgumentException("Not forward: " + position);
    }

    if (position + count > windowEnd) {
      int kept = (int) (windowEnd - position);
      int from = (int) (position - windowStart);
      long most = Math.max(count, Math.min(getLength(), endStart) - position);
      int size = (int) Math.min(Math.max(count, WINDOW), most);
      byte[] target = size > window.length ? new byte[size] : window;
      System.arraycopy(window, from, target, 0, kept);
      this.window = target;
      this.windowStart = position;
      this.windowEnd = position + kept;
      fill(size - kept);
    }

    return (int) (position - windowStart);
  }

  /** The bytes that {@link #require} made available; valid until it is called again. */
  byte[] window() {
    return window;
  }

  private void fill(int count) {
    int at = (int) (windowEnd - windowStart);
    int fromEnd = copyFromEnd(windowEnd + count, window, at, count);
    readFully(windowEnd, window, at, count - fromEnd);
    this.windowEnd += count;
  }

  /** Copies the last of the bytes up to a position, as far as they were read with the end. */
  private int copyFromEnd(long upTo, byte[] target, int at, int count) {
    int there = (int) Math.max(0, Math.min(count, upTo - endStart));
    if (there > 0) {
      System.arraycopy(end, (int) (upTo - there - endStart), target, at + count - there, there);
    }

    return there;
  }

  private void readFully(long position, byte[] target, int at, int count) {
    for (int got = 0; got < count; ) {
      int more = readStored(position + got, target, at + got, count - got);
      if (more <= 0) {
        throw new IcebergCryptoException(
            String.format(
                "its storage ended the read after %d bytes, but gives its length as %d",
                position + got, getLength()),
            CUT_HINT);
      }

      got += more;
    }
  }

  private int readStored(long position, byte[] target, int at, int count) {
    try {
      if (in == null) {
        this.in = stored.newStream();
      }

      if (in.getPos() != position) {
        in.seek(position);
      }

      int got = in.read(target, at, count);
      this.bytesRead += Math.max(0, got);
      return got;
    } catch (IOException | RuntimeException e) {
      throw new StorageException(e);
    }
  }

  private static <T> T fromStorage(Supplier<T> call) {
    try {
      return call.get();
    } catch (RuntimeException e) {
      throw new StorageException(e);
    }
  }

  private int read(long position, byte[] target, int at, int count) {
    if (windowEnd == 0) {
      readHead();
    }

    if (position >= windowStart && position < windowEnd) {
      int there = (int) Math.min(count, windowEnd - position);
      System.arraycopy(window, (int) (position - windowStart), target, at, there);
      return there;
    }

    long left = getLength() - position;
    if (left <= 0) {
      return -1;
    }

    if (position < endStart && position != windowEnd && left <= (whole ? MAX_END : END)) {
      readEnd(position);
    }

    if (position >= endStart) {
      int there = (int) Math.min(count, left);
      System.arraycopy(end, (int) (position - endStart), target, at, there);
      return there;
    }

    int wanted = (int) Math.min(count, Math.min(getLength(), endStart) - position);
    readFully(position, target, at, wanted);
    if (position == windowEnd) {
      this.windowStart = position + wanted;
      this.windowEnd = position + wanted;
    }

    return wanted;
  }

  private void readHead() {
    int head = whole && getLength() <= WHOLE ? WHOLE : FileMagic.HEAD_LENGTH;
    this.window = new byte[(int) Math.min(getLength(), head)];
    readFully(0, window, 0, window.length);
    this.windowEnd = window.length;
  }

  /** Reads from a position to the end, and the last bytes in any case. */
  private void readEnd(long position) {
    long last = Math.min(getLength(), endStart);
    long start = Math.max(windowEnd, Math.min(position, getLength() - END));
    byte[] longer = new byte[(int) (getLength() - start)];
    int more = (int) (last - start);
    readFully(start, longer, 0, more);
    System.arraycopy(end, 0, longer, more, end.length);
    this.end = longer;
    this.endStart = start;
  }

  private final class View extends SeekableInputStream {
    private long position;

    @Override
    public long getPos() {
      return position;
    }

    @Override
    public void seek(long newPosition) {
      this.position = newPosition;
    }

    @Override
    public int read() {
      byte[] single = new byte[1];
      return read(single, 0, 1) < 0 ? -1 : single[0] & 0xff;
    }

    @Override
    public int read(byte[] target, int at, int count) {
      if (count == 0) {
        return 0;
      }

      int got = StoredFile.this.read(position, target, at, count);
      this.position += Math.max(0, got);
      return got;
    }
  }

  /** The storage failed, which says nothing about the bytes of the file; its cause may. */
  public static final class StorageException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    StorageException(Throwable cause) {
      super(cause.getMessage(), cause);
    }
  }
}
