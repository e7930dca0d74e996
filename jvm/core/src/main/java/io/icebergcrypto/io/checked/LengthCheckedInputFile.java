package io.icebergcrypto.io.checked;

import org.apache.iceberg.hadoop.HadoopInputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;

/**
 * An encrypted file as it is stored, whose streams must have the length that the table expects.
 * Iceberg hands out files with the length that a manifest gives and never asks the storage: one
 * that was cut off then looks like one that Avro has read to its end.
 *
 * <p>It makes no request of its own. A stream that ends early throws, and one that is read to where
 * it must end reads one byte more, which no storage answers with another request as all of them
 * read on until the file's end. A reader that never gets to the end does not notice what stands
 * behind it, and has what it read authenticated by its blocks.
 */
final class LengthCheckedInputFile implements InputFile {
  private final InputFile stored;
  private final ExpectedFile file;

  LengthCheckedInputFile(InputFile stored, ExpectedFile file) {
    this.stored = stored;
    this.file = file;
  }

  /**
   * The file as Parquet reads it best. Parquet reads Hadoop's files past Iceberg's streams and asks
   * for their status anyway, which is kept in the file: the length is checked now, for nothing.
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
