package io.icebergcrypto.format;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import java.io.IOException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Recognizes files from their bytes, without a key, on any storage that Iceberg reads.
 *
 * <p>Give it the file as it is stored: an {@code InputFile} of the table's plain FileIO. One that
 * decrypts shows the plaintext.
 */
public final class FileInspector {
  /** What to do about a file that was lost or changed. An operator may follow it to the letter. */
  public static final String RESTORE =
      "Restore this file from a backup or an object version, and verify again. Until then, expire"
          + " and rewrite nothing: what it had may be nowhere else. docs/recovery.md says what is"
          + " left without a backup.";

  /** What to do about a file whose bytes are not what was written. */
  static final String DAMAGED_HINT =
      "The file was cut off, overwritten or changed after it was written. " + RESTORE;

  private FileInspector() {}

  /**
   * Recognises a file by its first {@value FileMagic#HEAD_LENGTH} bytes, in one read. The length is
   * not asked for, which saves a request on object storage, unless the read fails: S3 answers a
   * ranged read of an empty object with an error.
   *
   * @throws IcebergCryptoException if the file cannot be read
   * @throws NotFoundException if there is no such file
   */
  public static FileMagic magic(InputFile file) {
    try (SeekableInputStream in = file.newStream()) {
      byte[] head = in.readNBytes(FileMagic.HEAD_LENGTH);
      if (head.length < FileMagic.HEAD_LENGTH) {
        requireEnd(file, head.length);
      }

      return FileMagic.of(head);
    } catch (IOException e) {
      throw unreadable(file, e);
    } catch (NotFoundException e) {
      throw e;
    } catch (RuntimeException e) {
      if (file.getLength() == 0) {
        return FileMagic.EMPTY;
      }
      throw e;
    }
  }

  /**
   * Recognises a file and reads how it is encrypted. Reads {@value FileMagic#HEAD_LENGTH} bytes at
   * its start and, of an encrypted Parquet file, its last {@value PareFooter#TAIL_LENGTH} and up to
   * {@value PareFooter#MAX_PARSED_LENGTH} of its footer.
   *
   * @throws TamperedException if an encrypted file's header, footer or length is not what a writer
   *     makes, or the file is shorter than the storage says
   * @throws IcebergCryptoException if the file cannot be read
   * @throws NotFoundException if there is no such file
   */
  public static FileInspection inspect(InputFile file) {
    long length = file.getLength();
    try (SeekableInputStream in = file.newStream()) {
      byte[] head = read(in, 0, (int) Math.min(FileMagic.HEAD_LENGTH, length), file, length);
      FileMagic magic = FileMagic.of(head);
      Ags1Layout ags1 = null;
      PareFooter pare = null;
      if (magic == FileMagic.AGS1) {
        ags1 = Ags1Layout.parse(head, length, file.location());
      } else if (magic == FileMagic.PARE) {
        pare = readPareFooter(in, file, length);
      }
      return new FileInspection(file.location(), length, magic, ags1, pare);
    } catch (IOException e) {
      throw unreadable(file, e);
    }
  }

  private static PareFooter readPareFooter(SeekableInputStream in, InputFile file, long length)
      throws IOException {
    int tailLength = (int) Math.min(PareFooter.TAIL_LENGTH, length);
    byte[] tail = read(in, length - tailLength, tailLength, file, length);
    int footerLength = PareFooter.parseLength(tail, length, file.location());
    long start = length - PareFooter.TAIL_LENGTH - footerLength;
    int parsed = Math.min(footerLength, PareFooter.MAX_PARSED_LENGTH);
    byte[] footer = read(in, start, parsed, file, length);
    return PareFooter.parse(footer, footerLength, length, file.location());
  }

  private static byte[] read(
      SeekableInputStream in, long position, int count, InputFile file, long length)
      throws IOException {
    if (count == 0) {
      return new byte[0];
    }
    if (in.getPos() != position) {
      in.seek(position);
    }
    byte[] bytes = in.readNBytes(count);
    if (bytes.length < count) {
      requireEnd(file, position + bytes.length);
      throw endedEarly(file, position + bytes.length, length);
    }
    return bytes;
  }

  /** A read that ends early is the end of the file only if the storage says so. */
  private static void requireEnd(InputFile file, long position) {
    long length = file.getLength();
    if (length > position) {
      throw endedEarly(file, position, length);
    }
  }

  private static IcebergCryptoException endedEarly(InputFile file, long position, long length) {
    return new IcebergCryptoException(
        String.format(
            "%s could not be read: its storage ended the read after %d bytes, but gives its length"
                + " as %d",
            file.location(), position, length),
        "The file was replaced while it was read, or the storage failed. Try again.");
  }

  private static IcebergCryptoException unreadable(InputFile file, IOException cause) {
    return new IcebergCryptoException(
        "Cannot read " + file.location() + ": " + cause.getMessage(),
        "Check that the storage is up and that its credentials allow reading this file.",
        cause);
  }
}
