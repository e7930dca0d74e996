package io.icebergcrypto.io.checked;

import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
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
 *
 * @param parquet whether the reader is Parquet, whose first reads tell how it is encrypted
 */
record LengthCheckedInputFile(StoredInput stored, ExpectedFile file, boolean parquet)
    implements ForwardingInputFile {
  /**
   * The file as Parquet reads it best. It reads Hadoop's files without Iceberg's streams, and asks
   * for their status anyway, which the file keeps: checking the length now costs nothing. How it is
   * encrypted takes a read of its end, which others are watched for.
   */
  static InputFile forParquet(StoredInput stored, ExpectedFile file) {
    if (!(stored.file() instanceof HadoopInputFile hadoop)) {
      return new LengthCheckedInputFile(stored, file, stored.guarded());
    }

    long actual = hadoop.getStat().getLen();
    if (actual < file.length()) {
      throw file.shorter(actual, null);
    } else if (actual > file.length()) {
      throw file.longer(actual);
    }

    if (stored.guarded()) { // each time: the file may be another one since
      ParquetFooterCheck.check(file.table(), hadoop, actual);
    }

    return hadoop;
  }

  @Override
  public InputFile under() {
    return stored.file();
  }

  @Override
  public long getLength() {
    return file.length();
  }

  @Override
  public SeekableInputStream newStream() {
    SeekableInputStream stream = under().newStream();
    ParquetFooterCheck footer =
        parquet ? new ParquetFooterCheck(file.table(), location(), file.length()) : null;
    return stream instanceof RangeReadable ranges
        ? new LengthCheckedStream.WithRanges(stream, ranges, file, stored.length(), footer)
        : new LengthCheckedStream(stream, file, stored.length(), footer);
  }
}
