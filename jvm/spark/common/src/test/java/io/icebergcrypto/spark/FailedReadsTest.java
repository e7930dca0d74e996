package io.icebergcrypto.spark;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import java.io.EOFException;
import java.io.IOException;
import java.util.List;
import java.util.stream.IntStream;
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
    assertThat(
            FailedReads.explanation(List.of(FILE), new RuntimeException(new AEADBadTagException())))
        .get()
        .isInstanceOf(TamperedException.class)
        .extracting(Throwable::getMessage)
        .asString()
        .contains(FILE, "Restore it from a backup");
  }

  /** A delete file was opened beside: restoring one of them could take the wrong one. */
  @Test
  void ofSeveralFilesNoneIsAccused() {
    List<String> files = List.of(FILE, "d1.parquet", "d2.parquet");
    assertThat(FailedReads.explanation(files, new RuntimeException(new AEADBadTagException())))
        .get()
        .isInstanceOf(TamperedException.class)
        .extracting(Throwable::getMessage)
        .asString()
        .contains(FILE + ", d1.parquet or d2.parquet is not what was written", "deep => true")
        .doesNotContain("Restore it");
    List<String> many = IntStream.range(0, 40).mapToObj(i -> "d" + i).toList();
    assertThat(FailedReads.explanation(many, new RuntimeException(new AEADBadTagException())))
        .get()
        .extracting(Throwable::getMessage)
        .asString()
        .contains("d0, d1, d2, d3, d4 or 35 more");
    assertThat(FailedReads.explanation(List.of(), new AEADBadTagException())).isEmpty();
  }

  @Test
  void aPlaintextFileIsCalledThat() {
    String parquets = "Applying decryptor on plaintext file";
    assertThat(
            FailedReads.explanation(
                List.of(FILE),
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
      assertThat(FailedReads.explanation(List.of(FILE), new RuntimeException(failure)))
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
      assertThat(FailedReads.explanation(List.of(FILE), new RuntimeException(failure))).isEmpty();
    }
  }
}
