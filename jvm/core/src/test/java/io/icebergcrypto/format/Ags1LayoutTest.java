package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.TamperedException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.iceberg.encryption.AesGcmInputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class Ags1LayoutTest {
  private static final int BLOCK = Ags1Layout.ICEBERG_BLOCK_SIZE;
  private static final String PATH = "s3://bucket/db/t/m0.avro";

  @ParameterizedTest
  @CsvSource({
    "0, 1",
    "1, 1",
    BLOCK - 1 + ", 1",
    BLOCK + ", 1",
    BLOCK + 1 + ", 2",
    2 * BLOCK + ", 2",
    3 * BLOCK + 7 + ", 4",
  })
  void whatIcebergWrites(int plaintextLength, long blocks) throws IOException {
    byte[] plaintext = TestFiles.plaintext(plaintextLength);
    byte[] file = TestFiles.ags1(plaintext);

    Ags1Layout layout = FileInspector.inspect(TestFiles.input(file)).ags1();

    assertThat(layout).isEqualTo(new Ags1Layout(BLOCK, blocks, plaintextLength));
    AesGcmInputFile readBack =
        new AesGcmInputFile(
            TestFiles.input(file), TestFiles.KEY, TestFiles.AAD_PREFIX, (long) file.length);
    assertThat(readBack.getLength()).isEqualTo(layout.plaintextLength());
    try (SeekableInputStream in = readBack.newStream()) {
      assertThat(in.readAllBytes()).isEqualTo(plaintext);
    }
  }

  /** With blocks of 10 bytes a full one takes 38, behind a header of 8. */
  @ParameterizedTest
  @CsvSource({
    "36, 1, 0",
    "37, 1, 1",
    "45, 1, 9",
    "46, 1, 10",
    "75, 2, 11",
    "83, 2, 19",
    "84, 2, 20",
    "113, 3, 21",
  })
  void anyBlockSizeOfTheSpec(long fileLength, long blocks, long plaintextLength) {
    assertThat(Ags1Layout.parse(header(10), fileLength, PATH))
        .isEqualTo(new Ags1Layout(10, blocks, plaintextLength));
  }

  @ParameterizedTest
  @ValueSource(longs = {47, 60, 73, 74, 85, 112})
  void noBlocksHaveThisLength(long fileLength) {
    assertTampered(header(10), fileLength)
        .hasMessageContaining("after " + (fileLength - 8) / 38 + " full blocks of 38 bytes")
        .hasMessageContaining("there are " + (fileLength - 8) % 38 + " bytes")
        .hasMessageContaining("expected none or more than 28");
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 4, 8, 9, 35, -1, Long.MIN_VALUE})
  void shorterThanTheEmptyPlaintext(long fileLength) {
    assertTampered(header(BLOCK), fileLength).hasMessageContaining("expected at least 36 bytes");
  }

  @Test
  void shortHeader() {
    assertTampered(Arrays.copyOf(header(BLOCK), 7), 1000).hasMessageContaining("at least 36 bytes");
    assertTampered(new byte[0], 1000).hasMessageContaining("at least 36 bytes");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -1, Integer.MIN_VALUE, Integer.MAX_VALUE, Ags1Layout.MAX_BLOCK_SIZE + 1})
  void blockSizeOutOfRange(int blockSize) {
    assertTampered(header(blockSize), 1000)
        .hasMessageContaining("a block length of " + Integer.toUnsignedLong(blockSize) + " bytes")
        .hasMessageContaining("expected 1 to 67108864");
  }

  @Test
  void blockSizeAtItsLimits() {
    assertThat(Ags1Layout.parse(header(1), 37, PATH)).isEqualTo(new Ags1Layout(1, 1, 1));
    int most = Ags1Layout.MAX_BLOCK_SIZE;
    assertThat(Ags1Layout.parse(header(most), 36L + most, PATH))
        .isEqualTo(new Ags1Layout(most, 1, most));
  }

  @Test
  void blockCountAtItsLimit() {
    long most = Integer.MAX_VALUE;
    assertThat(Ags1Layout.parse(header(1), 8 + most * 29, PATH))
        .isEqualTo(new Ags1Layout(1, most, most));
    assertTampered(header(1), 8 + (most + 1) * 29).hasMessageContaining("2147483648 blocks");
    assertTampered(header(1), 8 + Long.MAX_VALUE / 29 / 2 * 29).hasMessageContaining(" blocks of ");
  }

  @Test
  void anotherMagic() {
    byte[] header = header(BLOCK);
    header[3] = '2';
    assertTampered(header, 1000).hasMessageContaining("expected it to start with AGS1");
  }

  @Test
  void cutInsideABlockIsSeenAndBehindOneIsNot() throws IOException {
    byte[] file = TestFiles.ags1(TestFiles.plaintext(2 * BLOCK + 5));
    long twoBlocks = 8 + 2L * (BLOCK + 28);
    assertTampered(file, twoBlocks + 28).hasMessageContaining("full blocks");
    assertThat(Ags1Layout.parse(file, twoBlocks, PATH).plaintextLength()).isEqualTo(2L * BLOCK);
  }

  private static AbstractThrowableAssert<?, ?> assertTampered(byte[] header, long fileLength) {
    return assertThatThrownBy(() -> Ags1Layout.parse(header, fileLength, PATH))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll(PATH, fileLength + " bytes", "hint: ");
  }

  private static byte[] header(int blockSize) {
    return ByteBuffer.allocate(8)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put("AGS1".getBytes(StandardCharsets.US_ASCII))
        .putInt(blockSize)
        .array();
  }
}
