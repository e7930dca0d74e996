package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.format.FileInspection;
import io.icebergcrypto.format.FileInspector;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.io.checked.ListedLength;
import io.icebergcrypto.spark.verify.deep.FileKey;
import io.icebergcrypto.spark.verify.deep.ParquetModules;
import io.icebergcrypto.spark.verify.deep.StoredFile;
import io.icebergcrypto.spark.verify.deep.StreamBlocks;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.IOUtil;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * Checks one file of an encrypted table, as deep as asked; any number of threads can use it. It
 * raises nothing: what is wrong with the file, or kept it from being checked, is in the result.
 *
 * @param depth how much of each file it reads
 * @param anyLength whether nothing is wrong with a stream whose length nothing gives
 */
public record FileCheck(Depth depth, boolean anyLength) implements Serializable {
  private static final int MAGIC_LENGTH = 4;

  /** At a Parquet file's end: the footer's length, and the magic. */
  private static final int TAIL_LENGTH = 8;

  /** Makes a check for which something has to give a stream's length. */
  public FileCheck(Depth depth) {
    this(depth, false);
  }

  /**
   * Checks a file.
   *
   * @param kind what it is to the table
   * @param format its format as the table's metadata says: parquet, avro, orc, puffin
   * @param stored the file as its storage has it, not decrypted; knows its length from there only
   * @param expectedLength its length in bytes as the table's metadata says; -1 when it does not
   * @param keyMetadata its key metadata, not encrypted, which is left as it is; null when the table
   *     has none. {@link Depth#MAGIC} needs none
   */
  public FileResult check(
      FileKind kind, String format, InputFile stored, long expectedLength, ByteBuffer keyMetadata) {
    Result result = new Result(expectedLength);
    try {
      if (depth == Depth.MAGIC) {
        checkMagic(kind, format, stored, result);
      } else {
        checkWhole(kind, format, stored, keyMetadata, result);
      }
    } catch (RuntimeException e) {
      result.failed(e, stored);
    }

    return result.checked();
  }

  /** Asks the storage for as little as it can: with the fewest requests, too. */
  private void checkMagic(FileKind kind, String format, InputFile stored, Result result) {
    if (result.length < 0) {
      result.length = stored.getLength();
    }

    result.magic = FileInspector.magic(stored);
    result.bytesRead = FileMagic.HEAD_LENGTH;
    result.problem = kind.problem(format, result.magic);
    if (result.problem == null && result.magic == FileMagic.PARE) {
      result.bytesRead += TAIL_LENGTH;
      result.problem =
          endsAsParquet(stored)
              ? null
              : new FileProblem(
                  ProblemCode.TRUNCATED,
                  "it starts with PARE, but does not end with it: it was cut off, or bytes were"
                      + " appended");
    }
  }

  private static boolean endsAsParquet(InputFile stored) {
    byte[] tail = new byte[TAIL_LENGTH];
    try (SeekableInputStream in = stored.newStream()) {
      int got = TAIL_LENGTH;
      if (in instanceof RangeReadable ranges) {
        got = ranges.readTail(tail, 0, TAIL_LENGTH); // object storage needs no length for it
      } else if (stored.getLength() < TAIL_LENGTH) {
        return false;
      } else {
        in.seek(stored.getLength() - TAIL_LENGTH);
        IOUtil.readFully(in, tail, 0, TAIL_LENGTH);
      }

      byte[] magic = Arrays.copyOfRange(tail, TAIL_LENGTH - MAGIC_LENGTH, TAIL_LENGTH);
      return got == TAIL_LENGTH && FileMagic.of(magic) == FileMagic.PARE;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void checkWhole(
      FileKind kind, String format, InputFile stored, ByteBuffer keyMetadata, Result result) {
    try (StoredFile file = new StoredFile(stored, depth == Depth.DEEP)) {
      try {
        check(kind, format, file, keyMetadata, result);
      } finally {
        result.bytesRead = file.bytesRead();
      }
    }
  }

  private void check(
      FileKind kind, String format, StoredFile file, ByteBuffer keyMetadata, Result result) {
    long expectedLength = result.length;
    result.length = file.getLength();
    result.magic = FileInspector.magic(file);
    result.problem = kind.problem(format, result.magic);
    if (result.problem != null || !result.magic.encrypted()) {
      return;
    }

    if (keyMetadata == null) {
      result.problem = new FileProblem(ProblemCode.NO_KEY, "the table has no key for it");
      return;
    }

    FileKey key = FileKey.of(file, keyMetadata);
    boolean stream = result.magic == FileMagic.AGS1;
    result.problem = wrongLength(file.getLength(), expectedLength, key.length(), stream);
    if (result.problem != null) {
      return;
    }

    checkContent(file, key, result);
    boolean known =
        key.length() != null
            || (stream ? ListedLength.fits(expectedLength, file.getLength()) : expectedLength >= 0);
    if (result.problem == null && !known && !anyLength) {
      result.problem =
          new FileProblem(
              ProblemCode.NO_LENGTH,
              "its key metadata gives no length, as when iceberg-rust wrote it, so bytes could be"
                  + " missing at its end");
    }
  }

  private void checkContent(StoredFile file, FileKey key, Result result) {
    FileInspection inspection = FileInspector.inspect(file);
    if (result.magic == FileMagic.AGS1
        && inspection.ags1().blockSize() != Ags1Layout.ICEBERG_BLOCK_SIZE) {
      result.problem =
          new FileProblem(
              ProblemCode.UNREADABLE,
              String.format(
                  "its header gives blocks of %d bytes, which only another program writes:"
                      + " Iceberg's have %d",
                  inspection.ags1().blockSize(), Ags1Layout.ICEBERG_BLOCK_SIZE));
    } else if (depth == Depth.DEEP && result.magic == FileMagic.AGS1) {
      StreamBlocks.check(file, key, inspection.ags1());
    } else if (depth == Depth.DEEP) {
      ParquetModules.check(file, key, inspection.pare().footerLength());
    }
  }

  /** The storage's length must be that of the key metadata and of the table's, if they say. */
  private static FileProblem wrongLength(
      long stored, long expected, Long inKeyMetadata, boolean stream) {
    long listed = stream && isContent(expected, inKeyMetadata, stored) ? stored : expected;
    long written = inKeyMetadata != null ? inKeyMetadata : listed;
    if (written >= 0 && stored != written) {
      boolean shorter = stored < written;
      return new FileProblem(
          shorter ? ProblemCode.TRUNCATED : ProblemCode.APPENDED,
          String.format(
              "it has %d bytes, expected %d: %s",
              stored, written, shorter ? "it was cut off" : "bytes were appended"));
    }

    return listed < 0 || listed == written
        ? null
        : tampered(
            "the table's metadata gives its length as %d bytes, its key metadata as %d",
            expected, written);
  }

  /** Whether the table has the length of a stream's content: see {@link ListedLength}. */
  private static boolean isContent(long expected, Long inKeyMetadata, long stored) {
    long length = inKeyMetadata != null ? inKeyMetadata : stored;
    return expected > 0 && Ags1Layout.storedLength(expected) == length && length == stored;
  }

  private static FileProblem tampered(String words, Object... values) {
    return new FileProblem(ProblemCode.TAMPERED, String.format(words, values));
  }

  private static final class Result {
    private FileMagic magic;
    private long length;
    private long bytesRead;
    private FileProblem problem;

    Result(long length) {
      this.length = length;
    }

    void failed(RuntimeException e, InputFile stored) {
      Throwable finding = FailedCheck.finding(e);
      boolean missing = finding instanceof NotFoundException;
      if (finding == null || missing) {
        // without access, some storages say that a file does not exist, or fail if it does not
        // exist
        this.problem =
            exists(stored, !missing)
                ? new FileProblem(ProblemCode.UNREADABLE, words(e))
                : FileProblem.MISSING;
      } else {
        this.problem = new FileProblem(FailedCheck.code(finding), words(finding));
      }
    }

    private static String words(Throwable e) {
      return e instanceof IcebergCryptoException known
          ? known.problem()
          : "it could not be read: " + FailedCheck.reason(e);
    }

    private static boolean exists(InputFile stored, boolean unknown) {
      try {
        return stored.exists();
      } catch (RuntimeException e) {
        return unknown;
      }
    }

    FileResult checked() {
      return new FileResult(magic, length, bytesRead, problem);
    }
  }
}
