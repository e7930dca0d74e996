package io.icebergcrypto.io.checked;

import org.apache.iceberg.hadoop.HadoopInputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * An encrypted file as it is stored, whose streams must have the length that the table expects.
 * Iceberg believes the length that a manifest gives and never asks the storage: to Avro, a file
 * that was cut off then looks like one read to its end.
 *
 * <p>It makes no request of its own. A stream that ends early throws, and one that is read to its
 * end tries to read one byte more, which costs no request as storage reads on to the file's end
 * anyway. A reader that never gets to the end does not notice appended bytes, but the blocks that
 * it read are authenticated.
 */
final class LengthCheckedInputFile implements InputFile {
  private final InputFile stored;
  private final ExpectedFile file;

  LengthCheckedInputFile(InputFile stored, ExpectedFile file) {
    this.stored = stored;
    this.file = file;
  }

  /**
   * The file as Parquet reads it best. It reads Hadoop's files without Iceberg's streams, and asks
   * for their status anyway, which the file keeps: checking the length now costs nothing.
   */
  static InputFile forParquet(InputFile stored, ExpectedFile file) {
    if (!(stored instanceof HadoopInputFile hadoop)) {
      return file.length() == null ? stored : new LengthCheckedInputFile(stored, file);
    }

    long actual = hadoop.getStat().getLen();
    if (file.length() != null && actual < file.length()) {
      throw file.shorter(actual, null);
    } else if (file.length() != null && actual > file.length()) {
      throw file.longer(actual);
    }

    return hadoop;
  }

  @Override
  public long getLength() {
    return file.length();
  }

  @Override
  public SeekableInputStream newStream() {
    SeekableInputStream stream = stored.newStream();
    return stream instanceof RangeReadable ranges
        ? new LengthCheckedStream.WithRanges(stream, ranges, file)
        : new LengthCheckedStream(stream, file);
  }

  @Override
  public String location() {
    return stored.location();
  }

  @Override
  public boolean exists() {
    return stored.exists();
  }
}
