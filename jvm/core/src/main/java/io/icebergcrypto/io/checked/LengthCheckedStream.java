package io.icebergcrypto.io.checked;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.IntFunction;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.FileRange;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * A stored file's bytes, which end exactly where the table expects. See {@link
 * LengthCheckedInputFile}.
 */
class LengthCheckedStream extends SeekableInputStream {
  /**
   * What the clients of object stores say of a range behind an object's end, HTTP status 416:
   * "Status Code: 416" (AWS), "Status code 416" (Azure), "416 Requested range not satisfiable"
   * (Google Cloud). The number alone may be in a path, as "status=416" of a partition is.
   */
  private static final Pattern BEHIND_THE_END =
      Pattern.compile(
          "\\b(status( code)?:?|HTTP(/[0-9.]+)?) 416\\b"
              + "|\\bInvalidRange\\b|\\brange (is )?not satisfiable",
          Pattern.CASE_INSENSITIVE);

  private final SeekableInputStream stored;
  private final LongSupplier storedLength;
  final ExpectedFile file;
  private final long length;
  private final ParquetFooterCheck footer; // may be null

  private long position = 0;
  private boolean endChecked = false;

  /**
   * Reads nothing yet.
   *
   * @param storedLength asks the storage for the file's length, once a read has ended early
   * @param footer looks at what is read; null: nothing does
   */
  LengthCheckedStream(
      SeekableInputStream stored,
      ExpectedFile file,
      LongSupplier storedLength,
      ParquetFooterCheck footer) {
    this.stored = stored;
    this.storedLength = storedLength;
    this.footer = footer;
    this.file = file;
    this.length = file.length();
  }

  @Override
  public int read() throws IOException {
    byte[] single = new byte[1];
    return read(single, 0, 1) < 0 ? -1 : single[0] & 0xff;
  }

  @Override
  public int read(byte[] bytes, int offset, int count) throws IOException {
    if (count == 0) {
      return 0;
    }

    if (position >= length) {
      checkEnd();
      return -1;
    }

    int wanted = (int) Math.min(count, length - position);
    int got;
    try {
      got = stored.read(bytes, offset, wanted);
    } catch (EOFException e) {
      throw early(position, e);
    } catch (RuntimeException e) {
      throw behindTheEnd(position, e);
    }

    if (got < 0) {
      throw early(position, null);
    }

    saw(position, bytes, offset, got);
    position += got;
    if (position == length) {
      checkEnd();
    }

    return got;
  }

  final void saw(long from, byte[] bytes, int offset, int count) {
    if (footer != null) {
      footer.saw(from, bytes, offset, count);
    }
  }

  @Override
  public void seek(long newPosition) throws IOException {
    if (newPosition > length) {
      throw new EOFException(
          "Invalid position " + newPosition + " in " + file.location() + " of " + length);
    }

    try {
      stored.seek(newPosition);
    } catch (EOFException e) {
      throw early(newPosition, e);
    } catch (RuntimeException e) {
      throw behindTheEnd(newPosition, e);
    }

    this.position = newPosition;
  }

  @Override
  public long getPos() {
    return position;
  }

  @Override
  public void close() throws IOException {
    stored.close();
  }

  /**
   * At the end, the storage must have no more bytes. Checked once, while its stream is there. Where
   * that stream is then does not matter: it is read again after a seek only.
   */
  private void checkEnd() throws IOException {
    if (endChecked) {
      return;
    }

    int more;
    try {
      more = stored.read();
    } catch (EOFException e) {
      more = -1;
    }

    if (more >= 0) {
      throw file.continues();
    }

    this.endChecked = true;
  }

  /** A read has ended before the file should: its storage has to say that there is no more. */
  final IcebergCryptoException early(long where, Throwable cause) {
    long length;
    try {
      length = storedLength.getAsLong();
    } catch (RuntimeException e) {
      e.addSuppressed(cause == null ? new EOFException() : cause);
      return file.endedEarly(where, "could not be asked for the file's length", e);
    }

    return length < file.length()
        ? file.shorter(length, cause)
        : file.endedEarly(where, "gives its length as " + length, cause);
  }

  private RuntimeException behindTheEnd(long where, RuntimeException e) {
    if (e instanceof NotFoundException) {
      return e; // there is no file, and so no end
    }

    boolean behind =
        Causes.of(e)
            .map(Throwable::getMessage)
            .anyMatch(words -> words != null && BEHIND_THE_END.matcher(words).find());
    return behind ? early(where, e) : e;
  }

  /** For storage that reads ranges, as Parquet does. */
  static final class WithRanges extends LengthCheckedStream implements RangeReadable {
    private final RangeReadable ranges;

    WithRanges(
        SeekableInputStream stored,
        RangeReadable ranges,
        ExpectedFile file,
        LongSupplier storedLength,
        ParquetFooterCheck footer) {
      super(stored, file, storedLength, footer);
      this.ranges = ranges;
    }

    @Override
    public void readFully(long from, byte[] bytes, int offset, int count) throws IOException {
      try {
        ranges.readFully(from, bytes, offset, count);
      } catch (EOFException e) {
        throw early(from + count, e);
      } catch (RuntimeException e) {
        throw super.behindTheEnd(from, e);
      }

      saw(from, bytes, offset, count);
    }

    @Override
    public int readTail(byte[] bytes, int offset, int count) throws IOException {
      // by position, not by where the storage says the end is
      int wanted = (int) Math.min(count, file.length());
      readFully(file.length() - wanted, bytes, offset, wanted);
      return wanted;
    }

    @Override
    public void readVectored(List<FileRange> wanted, IntFunction<ByteBuffer> allocate)
        throws IOException {
      try {
        ranges.readVectored(wanted, allocate);
      } catch (EOFException e) {
        throw early(file.length(), e);
      } catch (RuntimeException e) {
        throw super.behindTheEnd(file.length(), e);
      }
    }
  }
}
