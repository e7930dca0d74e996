package io.icebergcrypto.format;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.PareFooter.Algorithm;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.parquet.GenericParquetReaders;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.parquet.Parquet;
import org.assertj.core.api.AbstractThrowableAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PareFooterTest {
  private static final byte[] UNIQUE = new byte[8];

  /** A struct of one field, encryption_algorithm, whose value is up to the caller. */
  private static final String ALGORITHM = "1c";

  /** FileCryptoMetaData with AES_GCM_V1 and no settings. */
  private static final String PLAIN_GCM = ALGORITHM + "1c" + "00" + "00" + "00";

  @ParameterizedTest
  @ValueSource(ints = {16, 24, 32})
  void whatIcebergWrites(int keyLength) throws IOException {
    byte[] key = TestFiles.plaintext(keyLength);
    byte[] file = TestFiles.parquet(key, 100);

    FileInspection inspection = FileInspector.inspect(TestFiles.input(file));

    assertThat(inspection.magic()).isEqualTo(FileMagic.PARE);
    int footerLength =
        ByteBuffer.wrap(file, file.length - 8, 4).order(ByteOrder.LITTLE_ENDIAN).getInt();
    assertThat(inspection.pare())
        .isEqualTo(new PareFooter(footerLength, Algorithm.AES_GCM_V1, false, 8, true, 0));
    try (CloseableIterable<Record> rows =
        Parquet.read(TestFiles.input(file))
            .project(TestFiles.SCHEMA)
            .createReaderFunc(type -> GenericParquetReaders.buildReader(TestFiles.SCHEMA, type))
            .withFileEncryptionKey(ByteBuffer.wrap(key))
            .withAADPrefix(ByteBuffer.wrap(TestFiles.AAD_PREFIX))
            .build()) {
      assertThat(rows)
          .hasSize(100)
          .last()
          .extracting(row -> row.getField("name"))
          .isEqualTo("name-99");
    }
  }

  @Test
  void plaintextParquetIsToldApart() throws IOException {
    FileInspection inspection =
        FileInspector.inspect(TestFiles.input(TestFiles.parquet(null, 100)));

    assertThat(inspection.magic()).isEqualTo(FileMagic.PAR1);
    assertThat(inspection.magic().encrypted()).isFalse();
    assertThat(inspection.pare()).isNull();
  }

  @Test
  void settingsAsParquetsOwnThriftCodeWritesThem() throws IOException {
    List<Boolean> supplies = Arrays.asList(null, true, false);
    for (boolean ctr : new boolean[] {false, true}) {
      for (Boolean supply : supplies) {
        for (int unique : new int[] {-1, 0, 8, 200}) {
          for (int prefix : new int[] {-1, 0, 16, 1000}) {
            for (int keyMetadata : new int[] {-1, 0, 300}) {
              byte[] crypto =
                  TestFiles.cryptoMetaData(
                      ctr, binary(prefix), binary(unique), supply, binary(keyMetadata));
              byte[] footer = TestFiles.footer(crypto, 50);
              PareFooter expected =
                  new PareFooter(
                      footer.length,
                      ctr ? Algorithm.AES_GCM_CTR_V1 : Algorithm.AES_GCM_V1,
                      prefix >= 0,
                      Math.max(0, unique),
                      supply != null && supply,
                      Math.max(0, keyMetadata));
              assertThat(inspect(footer)).isEqualTo(expected);
            }
          }
        }
      }
    }
  }

  @Test
  void footerLongerThanWhatIsRead() throws IOException {
    byte[] crypto = TestFiles.cryptoMetaData(false, null, UNIQUE, true, null);
    assertThat(inspect(TestFiles.footer(crypto, 1 << 20)).footerLength())
        .isEqualTo(crypto.length + 4 + 28 + (1 << 20));
  }

  @Test
  void whatParquetsWritersSayOfGcm() throws IOException {
    for (byte[] prefix : new byte[][] {null, new byte[16]}) {
      for (Boolean supply : new Boolean[] {null, true, false}) {
        byte[] gcm = TestFiles.cryptoMetaData(false, prefix, UNIQUE, supply, prefix);
        byte[] ctr = TestFiles.cryptoMetaData(true, prefix, UNIQUE, supply, prefix);
        assertThat(PareFooter.isGcm(TestFiles.footer(gcm, 50))).isTrue();
        assertThat(PareFooter.isGcm(TestFiles.footer(ctr, 50))).isFalse();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        ALGORITHM + "1c0000" + "0c022c0000" + "00", // the algorithm twice
        ALGORITHM + "1c0000" + "0c021c0000" + "00",
        ALGORITHM + "1c00" + "1c0000" + "00", // a union of two
        ALGORITHM + "1c0000" + "2100", // a field that nobody knows
        ALGORITHM + "1c0000", // cut off
        "00",
        "ff"
      })
  void whatReadersCouldTakeForSomethingElseIsNotGcm(String crypto) {
    assertThat(PareFooter.isGcm(TestFiles.footer(hex(PLAIN_GCM), 50))).isTrue();
    assertThat(PareFooter.isGcm(hex(crypto))).isFalse();
  }

  @Test
  void keyMetadataLongerThanWhatIsRead() throws IOException {
    byte[] crypto = TestFiles.cryptoMetaData(false, null, UNIQUE, true, new byte[5000]);
    assertMalformed(TestFiles.footer(crypto, 50));
  }

  @Test
  void unknownFieldsArePassedOver() {
    // fields 3 to 12: a boolean, a byte, an i32, a double, a text, a list, a map and a struct
    String fields =
        "21"
            + "1305"
            + "1506"
            + ("17" + "00".repeat(8))
            + "1803616263"
            + "19250204"
            + "1b0183016105"
            + "1c150200";
    byte[] crypto = hex(ALGORITHM + "1c" + "00" + "00" + fields + "00");
    assertThat(inspect(TestFiles.footer(crypto, 50)).algorithm()).isEqualTo(Algorithm.AES_GCM_V1);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "00", // no algorithm
        "1c0000", // an empty one
        "28016100",
        "1500", // an algorithm that is a number
        "1c1c00002f00", // a type that does not exist
        "1c1c000028ffffffff0f", // lengths and counts behind the end
        "1c1c000028ffffffffffffffffff01",
        "1c1c00002880c2d72f", // 100 MB
        "1c1c000039f5ffffffff0f",
        "1c1c00003bffffffff0f88",
      })
  void malformed(String crypto) {
    assertMalformed(TestFiles.footer(hex(crypto), 50));
  }

  @Test
  void unknownAlgorithm() {
    assertInspectTampered(TestFiles.pare(TestFiles.footer(hex("1c3c000000"), 50)))
        .hasMessageContaining("its footer names no known encryption algorithm");
  }

  @Test
  void nestingIsLimited() {
    assertMalformed(TestFiles.footer(hex(PLAIN_GCM.substring(0, 8) + "3c".repeat(4000)), 5000));
    assertMalformed(
        TestFiles.footer(hex(PLAIN_GCM.substring(0, 8) + "39" + "19".repeat(4000)), 5000));
  }

  @Test
  void moduleHasToFillTheFooter() {
    byte[] footer = TestFiles.footer(hex(PLAIN_GCM), 50);
    footer[PLAIN_GCM.length() / 2]++;
    assertInspectTampered(TestFiles.pare(footer))
        .hasMessageContaining("gives its length as 79 bytes, expected 78");
    byte[] longer = Arrays.copyOf(TestFiles.footer(hex(PLAIN_GCM), 50), 4 + 28 + 60);
    assertInspectTampered(TestFiles.pare(longer))
        .hasMessageContaining("gives its length as 78 bytes");
    byte[] onlyCryptoMetaData =
        hex(ALGORITHM + "1c" + "00" + "00" + "28" + "1f" + "00".repeat(31) + "00");
    assertInspectTampered(TestFiles.pare(onlyCryptoMetaData))
        .hasMessageContaining("there is no room for the encrypted file metadata");
  }

  @ParameterizedTest
  @CsvSource({"0, 0", "32, 32", "-1, 4294967295", "2147483647, 2147483647", "1000, 1000"})
  void footerLengthOutOfRange(int length, long shown) {
    byte[] file = TestFiles.pare(TestFiles.footer(hex(PLAIN_GCM), 50));
    ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).putInt(file.length - 8, length);
    assertInspectTampered(file)
        .hasMessageContaining("a footer of " + shown + " bytes, expected 33 to 187");
  }

  @Test
  void cutOff() {
    byte[] file = TestFiles.pare(TestFiles.footer(hex(PLAIN_GCM), 50));
    for (int length = 4; length < file.length; length++) {
      assertInspectTampered(Arrays.copyOf(file, length));
    }
    assertInspectTampered(Arrays.copyOf(file, file.length - 1))
        .hasMessageContaining("expected it to end with PARE too");
    assertInspectTampered(Arrays.copyOf(file, 44)).hasMessageContaining("more than 44 bytes");
    assertInspectTampered(Arrays.copyOf(file, file.length + 1));
  }

  private static PareFooter inspect(byte[] footer) {
    return FileInspector.inspect(TestFiles.input(TestFiles.pare(footer))).pare();
  }

  private static AbstractThrowableAssert<?, ?> assertMalformed(byte[] footer) {
    return assertInspectTampered(TestFiles.pare(footer))
        .hasMessageContaining("its footer of " + footer.length + " bytes does not parse");
  }

  private static AbstractThrowableAssert<?, ?> assertInspectTampered(byte[] file) {
    return assertThatThrownBy(() -> FileInspector.inspect(TestFiles.input(file)))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("s3://bucket/db/t/file, " + file.length + " bytes long", "hint: ");
  }

  private static byte[] binary(int length) {
    return length < 0 ? null : TestFiles.plaintext(length);
  }

  private static byte[] hex(String digits) {
    return HexFormat.of().parseHex(digits);
  }
}
