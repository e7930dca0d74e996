package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every block of AES GCM streams. */
class DeepStreamTest {
  private static final int BLOCK = 1 << 20;
  private static final int STORED_BLOCK = BLOCK + 28;

  @ParameterizedTest
  @CsvSource({"16,0", "16,1", "24,1048576", "32,1048577", "16,3145728", "16,8388608", "16,9000000"})
  void cleanFiles(int keyLength, int length) throws IOException {
    EncryptedFile file = EncryptedFile.stream(length, keyLength);
    assertThat(file.check(Depth.DEEP))
        .isEqualTo(new FileResult(FileMagic.AGS1, file.bytes().length, file.bytes().length, null));
  }

  @ParameterizedTest
  @ValueSource(ints = {3 * BLOCK + 5, 11 * BLOCK})
  void aFlippedBitIsFoundInItsBlock(int length) throws IOException {
    EncryptedFile file = EncryptedFile.stream(length, 16);
    int end = file.bytes().length;
    int blocks = (length + BLOCK - 1) / BLOCK;
    for (long at :
        new long[] {8, 8 + STORED_BLOCK - 1, 8 + STORED_BLOCK, 2 * STORED_BLOCK, end - 1}) {
      String block = "block " + (at - 8) / STORED_BLOCK + " of " + blocks;
      assertThat(file.flipped(at).check(Depth.DEEP).words())
          .startsWith(block + " fails authentication with the file's key");
    }
  }

  @Test
  void noBitOfAFileCanBeFlipped() throws IOException {
    EncryptedFile file = EncryptedFile.stream(20, 16);
    for (int at = 0; at < file.bytes().length; at++) {
      for (int bit = 0; bit < 8; bit++) {
        byte[] flipped = file.bytes().clone();
        flipped[at] ^= (byte) (1 << bit);
        FileResult checked = file.with(flipped).check(Depth.DEEP);
        assertThat(checked.words()).as("bit %d of byte %d", bit, at).isNotNull();
        assertThat(checked.unchecked() && at >= 8).as("bit %d of byte %d", bit, at).isFalse();
      }
    }
  }

  @Test
  void swappedBlocks() throws IOException {
    EncryptedFile file = EncryptedFile.stream(4 * BLOCK, 16);
    byte[] swapped = file.bytes().clone();
    System.arraycopy(file.bytes(), 8 + STORED_BLOCK, swapped, 8 + 2 * STORED_BLOCK, STORED_BLOCK);
    System.arraycopy(file.bytes(), 8 + 2 * STORED_BLOCK, swapped, 8 + STORED_BLOCK, STORED_BLOCK);
    assertThat(file.with(swapped).check(Depth.DEEP).words()).startsWith("block 1 of 4");
  }

  /** Cut off exactly behind a block, it looks whole: only its length tells. */
  @Test
  void cutOffBehindABlock() throws IOException {
    EncryptedFile file = EncryptedFile.stream(2 * BLOCK + 5, 16);
    EncryptedFile cut = file.with(Arrays.copyOf(file.bytes(), 8 + 2 * STORED_BLOCK));
    int length = file.bytes().length;
    for (Depth depth : List.of(Depth.STRUCTURE, Depth.DEEP)) {
      assertThat(cut.check(depth, -1, file.keyMetadata()).words()).endsWith("it was cut off");
      assertThat(cut.check(depth, length, file.metadata().buffer()).words())
          .endsWith("it was cut off");
      FileResult unknown = cut.check(depth, -1, file.metadata().buffer());
      assertThat(unknown.words()).endsWith("bytes could be missing at its end");
      assertThat(unknown.code()).isEqualTo(ProblemCode.NO_LENGTH);
      FileResult flipped = cut.flipped(50).check(depth, -1, file.metadata().buffer());
      assertThat(flipped.code())
          .isEqualTo(depth == Depth.STRUCTURE ? ProblemCode.NO_LENGTH : ProblemCode.TAMPERED);
    }
  }

  @Test
  void twoFilesSwapped() throws IOException {
    EncryptedFile file = EncryptedFile.stream(1000, 16);
    EncryptedFile other = EncryptedFile.stream(1000, 16);
    assertThat(file.with(other.bytes()).check(Depth.DEEP).words()).startsWith("block 0 of 1");
    EncryptedFile wrongPrefix =
        new EncryptedFile("avro", file.bytes(), new Keys(file.key(), other.aadPrefix()));
    assertThat(wrongPrefix.check(Depth.DEEP).words()).startsWith("block 0 of 1");
  }

  /** Files that iceberg-rust wrote; tests/vectors/README.md says where they are from. */
  @ParameterizedTest
  @CsvSource({"16, 0", "16, 1", "24, 0", "24, 1", "32, 0", "32, 1"})
  void streamsOfIcebergRust(int keyLength, int plaintextLength) throws IOException {
    byte[] key = new byte[keyLength];
    for (int i = 0; i < keyLength; i++) {
      key[i] = (byte) i;
    }

    checkVector(
        "made_rust/k" + keyLength + "_" + plaintextLength + ".ags1",
        new Keys(key, HexFormat.of().parseHex("a0a1a2a3a4a5a6a7a8a9aaabacadaeaf")));
  }

  @Test
  void manifestListOfIcebergRust() throws IOException {
    checkVector(
        "iceberg-rust-manifest-list.avro",
        new Keys(
            HexFormat.of().parseHex("5bb3b37709a50a8ea8b7165034f77a77"),
            HexFormat.of().parseHex("f726dcbf98e79dcedf353a0904104294")));
  }

  private static void checkVector(String name, Keys keys) throws IOException {
    Path vectors = Path.of(System.getProperty("iceberg.crypto.root"), "tests", "vectors");
    EncryptedFile file = new EncryptedFile("avro", Files.readAllBytes(vectors.resolve(name)), keys);
    assertThat(file.check(Depth.DEEP).words()).isNull();
    assertThat(file.flipped(file.bytes().length - 3).check(Depth.DEEP).words())
        .startsWith("block 0 of 1");
  }
}
