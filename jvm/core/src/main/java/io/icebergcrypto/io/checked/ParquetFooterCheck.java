package io.icebergcrypto.io.checked;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.format.PareFooter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * How a Parquet file that has key metadata is encrypted, by the end of it (Parquet modular
 * encryption, section 5). Iceberg encrypts footers, and all modules with AES-GCM; other writers
 * need not. Under AES_GCM_CTR_V1, pages are not authenticated: changed bits give other rows,
 * without an error. A plaintext footer shows schema and statistics. Both are refused.
 *
 * <p>A reader of the file may be watched, which costs no request: Parquet reads the end first.
 */
public final class ParquetFooterCheck {
  /** The footer's length and the magic. */
  private static final int TAIL = 8;

  /** Most footers are shorter, so that one read gets all. */
  private static final int AT_ONCE = 16 << 10;

  private static final byte[] ENCRYPTED = "PARE".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] PLAINTEXT = "PAR1".getBytes(StandardCharsets.US_ASCII);

  private static final String HINT =
      "A client other than Iceberg's own wrote it, or put it in the place of the table's: find out"
          + " who. Such a client has to write encrypted footers and AES_GCM_V1. To use the file"
          + " anyway, set the catalog property encryption.plaintext-files=allow.";

  private final String table;
  private final String location;
  private final long length;
  private final byte[] tail = new byte[TAIL];
  private byte[] start = new byte[0]; // of the footer, once the tail says where that is
  private int ofTail = 0; // how many bytes of it were seen
  private int ofStart = 0;

  /** Watches the reads of one file. */
  ParquetFooterCheck(String table, String location, long length) {
    this.table = table;
    this.location = location;
    this.length = length;
  }

  /**
   * Checks a file, in one read or two.
   *
   * @param table the table's full name
   * @param stored the file as it is stored
   * @param length its length in bytes
   * @throws PlaintextException when its footer is not encrypted
   * @throws NotSupportedException when its pages are not authenticated, or it is not a Parquet file
   */
  public static void check(String table, InputFile stored, long length) {
    ParquetFooterCheck check = new ParquetFooterCheck(table, stored.location(), length);
    try (SeekableInputStream in = stored.newStream()) {
      int count = (int) Math.min(length, AT_ONCE);
      check.read(in, length - count, count);
      if (check.ofStart < check.start.length) {
        check.read(in, check.footerStart(), check.start.length);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read " + stored.location(), e);
    }

    if (check.start.length == 0) {
      throw check.refusal("does not end like an encrypted Parquet file");
    }
  }

  private void read(SeekableInputStream in, long position, int count) throws IOException {
    byte[] bytes = new byte[count];
    if (in instanceof RangeReadable ranges) {
      ranges.readFully(position, bytes);
    } else {
      in.seek(position);
      IOUtil.readFully(in, bytes, 0, count);
    }

    saw(position, bytes, 0, count);
  }

  /** Tells what a reader got. A reader reads forward through the tail, and then the footer. */
  void saw(long position, byte[] bytes, int offset, int count) {
    if (position + count > length - TAIL && ofTail < TAIL) {
      ofTail += copy(position, bytes, offset, count, length - TAIL + ofTail, tail, ofTail);
      if (ofTail == TAIL) {
        sawTail();
      }
    }

    if (ofStart < start.length) {
      ofStart += copy(position, bytes, offset, count, footerStart() + ofStart, start, ofStart);
      if (ofStart == start.length && !PareFooter.isGcm(start)) {
        throw refusal(
            "is not encrypted with AES_GCM_V1, or its footer could be taken to say otherwise: under"
                + " AES_GCM_CTR_V1 pages are not authenticated, so nothing shows whether they were"
                + " changed");
      }
    }
  }

  private void sawTail() {
    if (Arrays.equals(tail, 4, TAIL, PLAINTEXT, 0, 4)) {
      throw plaintext(location).inTable(table);
    }

    if (footerStart() > 0) {
      this.start =
          new byte[(int) Math.min(length - TAIL - footerStart(), PareFooter.MAX_PARSED_LENGTH)];
    }
  }

  /** The error of a file whose footer is not encrypted. */
  public static IcebergCryptoException plaintext(String location) {
    return new PlaintextException(
        String.format(
            "file %s has a footer that is not encrypted: it reveals the schema and column"
                + " statistics, if not more",
            location),
        HINT);
  }

  /** Copies the bytes from a position on that were read; returns how many. */
  private static int copy(
      long position, byte[] bytes, int offset, int count, long from, byte[] target, int at) {
    int there = (int) Math.min(target.length - at, position + count - from);
    if (there <= 0 || from < position) {
      return 0;
    }

    System.arraycopy(bytes, offset + (int) (from - position), target, at, there);
    return there;
  }

  /** Where the footer starts; 0 when the tail does not say. */
  private long footerStart() {
    int footer = ByteBuffer.wrap(tail).order(ByteOrder.LITTLE_ENDIAN).getInt();
    boolean encrypted = Arrays.equals(tail, 4, TAIL, ENCRYPTED, 0, 4);
    return encrypted && footer > 0 ? Math.max(0, length - TAIL - footer) : 0;
  }

  private IcebergCryptoException refusal(String problem) {
    return new NotSupportedException("file " + location + " " + problem, HINT).inTable(table);
  }
}
