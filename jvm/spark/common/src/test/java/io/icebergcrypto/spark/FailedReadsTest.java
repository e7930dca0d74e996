package io.icebergcrypto.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import java.io.EOFException;
import java.io.IOException;
import java.util.List;
import javax.crypto.AEADBadTagException;
import org.junit.jupiter.api.Test;

/** What is said of a Parquet file that a Spark task could not read. */
class FailedReadsTest {
  private static final String FILE = "s3://lake/db/t/data/a.parquet";

  /** An error that was thrown by some class, called by Parquet. */
  private static <T extends Throwable> T thrown(T error, String by) {
    error.setStackTrace(
        new StackTraceElement[] {
          new StackTraceElement(by, "run", null, 1),
          new StackTraceElement(
              "org.apache.iceberg.shaded.org.apache.parquet.hadoop.ParquetFileReader",
              "read",
              null,
              1)
        });
    return error;
  }

  @Test
  void aTagThatIsWrongAccuses() {
    assertThat(FailedReads.explanation(FILE, new RuntimeException(new AEADBadTagException())))
        .get()
        .isInstanceOf(TamperedException.class)
        .extracting(Throwable::getMessage)
        .asString()
        .contains(FILE, "Restore it from a backup");
  }

  @Test
  void aPlaintextFileIsCalledThat() {
    String parquets = "Applying decryptor on plaintext file";
    assertThat(
            FailedReads.explanation(
                FILE,
                thrown(
                    new IllegalStateException(parquets),
                    "org.apache.parquet.format.converter.ParquetMetadataConverter")))
        .get()
        .isInstanceOf(PlaintextException.class);
  }

  @Test
  void aFailureAccusesNobodyAndNamesTheFile() {
    for (Throwable failure :
        List.of(
            thrown(new UnsatisfiedLinkError("SnappyNative"), "org.xerial.snappy.SnappyNative"),
            thrown(new NoClassDefFoundError("Zstd"), "com.github.luben.zstd.Zstd"),
            thrown(new OutOfMemoryError("Java heap space"), "java.util.Arrays"),
            thrown(new IllegalStateException("codec LZ9"), "java.lang.Enum"),
            thrown(new EOFException(), "java.io.DataInputStream"))) {
      assertThat(FailedReads.explanation(FILE, new RuntimeException(failure)))
          .as("%s", failure)
          .get()
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .extracting(Throwable::getMessage)
          .asString()
          .contains(FILE, "verify_encryption")
          .doesNotContain("Restore", "changed");
    }
  }

  @Test
  void othersErrorsAreLeftAlone() {
    for (Throwable failure :
        List.of(
            new NotSupportedException("a footer that is not encrypted", "hint"),
            thrown(new IOException("reset"), "org.apache.hadoop.fs.s3a.S3AInputStream"),
            new IllegalStateException("of the query"))) {
      assertThat(FailedReads.explanation(FILE, new RuntimeException(failure))).isEmpty();
    }
  }
}
