package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.security.InvalidKeyException;
import java.security.NoSuchAlgorithmException;
import java.util.List;
import javax.crypto.AEADBadTagException;
import javax.crypto.BadPaddingException;
import org.apache.iceberg.encryption.Ciphers;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.AesMode;
import org.apache.iceberg.shaded.org.apache.parquet.crypto.ModuleCipherFactory;
import org.apache.iceberg.shaded.org.apache.parquet.format.BlockCipher;
import org.junit.jupiter.api.Test;

/** The rows of the table in docs/tamper.md that are of errors. */
class EvidenceTest {
  private static final byte[] KEY =
      "0123456789abcdef".getBytes(java.nio.charset.StandardCharsets.US_ASCII);

  @Test
  void aWrongTagAccuses() {
    Throwable ofIceberg =
        catchThrowable(() -> new Ciphers.AesGcmDecryptor(KEY).decrypt(new byte[40], new byte[0]));
    assertThat(Evidence.isWrongTag(ofIceberg)).isTrue();
    assertThat(Evidence.isWrongTag(new RuntimeException(new BadPaddingException("mac check"))))
        .as("as other providers say it")
        .isTrue();
    assertThat(Evidence.isWrongTag(new AEADBadTagException())).isTrue();
  }

  @Test
  void whatParquetSaysOfAModuleAccuses() {
    BlockCipher.Decryptor parquet = ModuleCipherFactory.getDecryptor(AesMode.GCM, KEY);
    byte[] zeros = new byte[40];
    assertThat(Evidence.isOfParquet(catchThrowable(() -> parquet.decrypt(zeros, new byte[0]))))
        .isTrue();
    assertThat(
            Evidence.isOfParquet(catchThrowable(() -> parquet.decrypt(new byte[10], new byte[0]))))
        .as("a module of 10 bytes")
        .isTrue();
    assertThat(
            Evidence.isOfParquet(
                catchThrowable(
                    () -> parquet.decrypt(new ByteArrayInputStream(zeros), new byte[0]))))
        .as("a length of 0 in front of a module")
        .isTrue();
    byte[] ended = {40, 0, 0, 0, 1, 2, 3};
    assertThat(
            Evidence.isOfParquet(
                catchThrowable(
                    () -> parquet.decrypt(new ByteArrayInputStream(ended), new byte[0]))))
        .as("a read that ended early")
        .isFalse();
  }

  @Test
  void nothingElseAccuses() {
    List<Throwable> failures =
        List.of(
            new UnsatisfiedLinkError("org.xerial.snappy"),
            new NoClassDefFoundError("com/github/luben/zstd/Zstd"),
            new ClassNotFoundException("org.apache.hadoop.io.compress.Lz4Codec"),
            new OutOfMemoryError("Java heap space"),
            new EOFException(),
            new IOException("Wrong length of encrypted metadata: 0"), // not Parquet's
            new NoSuchAlgorithmException("AES/GCM/NoPadding"),
            new InvalidKeyException("24 bytes"),
            new NegativeArraySizeException("-4"),
            new IllegalStateException());
    for (Throwable failure : failures) {
      assertThat(Evidence.isWrongTag(new RuntimeException(failure))).as("%s", failure).isFalse();
      assertThat(Evidence.isOfParquet(new RuntimeException(failure))).as("%s", failure).isFalse();
    }
  }
}
