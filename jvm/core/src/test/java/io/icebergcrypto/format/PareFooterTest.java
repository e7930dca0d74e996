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
  void keyMetadataLongerThanWhatIsRead() throws IOException {
    byte[] crypto = TestFiles.cryptoMetaData(false, null, UNIQUE, true, new byte[5000]);
    assertMalformed(TestFiles.footer(crypto, 50)).hasMessageContaining("a value of 5000 bytes");
  }

  @Test
  void unknownFieldsArePassedOver() {
    // Fields 3 to 14 of FileCryptoMetaData, one of each type Thrift knows: two booleans, a byte,
    // an i16, an i32, an i64, a double, binary, a list of i32, a list of 15 booleans, a map of
    // binary to bytes, an empty map, a struct, a UUID; field 300 with its number written in full.
    String fields =
        "21"
            + "12"
            + "1305"
            + "1402"
            + "1506"
            + "16ffffffffffffffffff01"
            + "17"
            + "00".repeat(8)
            + "18"
            + "03616263"
            + "19"
            + "25"
            + "0204"
            + "19"
            + "f1"
            + "0f"
            + "01".repeat(15)
            + "1b"
            + "02"
            + "83"
            + "016105"
            + "016206"
            + "1b"
            + "00"
            + "1c"
            + "15"
            + "02"
            + "00"
            + "1d"
            + "00".repeat(16)
            + "01"
            + "d804";
    byte[] crypto = hex(ALGORITHM + "1c" + "00" + "00" + fields + "00");
    assertThat(inspect(TestFiles.footer(crypto, 50)).algorithm()).isEqualTo(Algorithm.AES_GCM_V1);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "00 | it names no encryption algorithm",
        "1c0000 | it names no encryption algorithm",
        "28016100 | it names no encryption algorithm",
        "1c3c000000 | encryption algorithm number 3, expected 1 (AES_GCM_V1) or 2",
        "1c1c001c000000 | the encryption algorithm is there twice",
        "1c1c00000c021c000000 | the encryption algorithm is there twice",
        "1500 | encryption_algorithm has the wrong type",
        "1c150000 | the encryption algorithm has the wrong type",
        "1c1c1500000000 | aad_prefix has the wrong type",
        "1c1c180161080201610000 | aad_prefix is there twice",
        "1c1c2801610804016100000000 | aad_file_unique is there twice",
        "1c1c3108060000 | supply_aad_prefix has the wrong type",
        "1c1c3102060000 | supply_aad_prefix is there twice",
        "1c1c00001801000804010000 | key_metadata is there twice",
        "1c1c00f0 | a struct ends with byte 240, expected 0",
        "1c1c00002f00 | type 15 at offset 5 is unknown",
        "1c1c0000150000 | key_metadata has the wrong type",
        "1c1c000028ffffffff0f | a value of 4294967295 bytes at offset 10",
        "1c1c000028ffffffffffffffffff01 | a value of 18446744073709551615 bytes",
        "1c1c000028ffffffffffffffffffff01 | a number of more than 10 bytes",
        "1c1c000039f5ffffffff0f | a collection of 4294967295 elements",
        "1c1c00003bffffffff0f88 | a collection of 4294967295 elements",
        "1c1c0000080016 | field number 0 is out of range",
        "1c1c0000080116 | field number -1 is out of range",
        "1c1c000008ffffff0f | out of range",
      })
  void malformed(String crypto, String problem) {
    byte[] footer = TestFiles.footer(hex(crypto), 50);
    assertMalformed(footer).hasMessageContaining(problem);
  }

  @Test
  void fieldNumbersDoNotGrowWithoutEnd() {
    byte[] crypto = hex(PLAIN_GCM.substring(0, 8) + "f3ff".repeat(3000));
    assertMalformed(TestFiles.footer(crypto, 5000))
        .hasMessageContaining("it ends after 4096 bytes");
    assertMalformed(TestFiles.footer(hex(PLAIN_GCM.substring(0, 8) + "03feff03ff" + "f3ff"), 50))
        .hasMessageContaining("out of range");
  }

  @Test
  void nestingIsLimited() {
    assertMalformed(TestFiles.footer(hex(PLAIN_GCM.substring(0, 8) + "3c".repeat(4000)), 5000))
        .hasMessageContaining("more than 16 levels of nesting");
    assertMalformed(
            TestFiles.footer(hex(PLAIN_GCM.substring(0, 8) + "39" + "19".repeat(4000)), 5000))
        .hasMessageContaining("more than 16 levels of nesting");
  }

  @Test
  void moduleHasToFillTheFooter() {
    byte[] footer = TestFiles.footer(hex(PLAIN_GCM), 50);
    footer[PLAIN_GCM.length() / 2]++;
    assertMalformed(footer).hasMessageContaining("gives its length as 79 bytes, expected 78");
    byte[] longer = Arrays.copyOf(TestFiles.footer(hex(PLAIN_GCM), 50), 4 + 28 + 60);
    assertMalformed(longer).hasMessageContaining("gives its length as 78 bytes");
    // A footer that is all crypto metadata.
    byte[] full = hex(ALGORITHM + "1c" + "00" + "00" + "28" + "1f" + "00".repeat(31) + "00");
    assertMalformed(full).hasMessageContaining("no room for the encrypted file metadata");
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
        .hasMessageContaining("s3://bucket/db/t/file, " + file.length + " bytes long")
        .hasMessageContaining("hint: ");
  }

  private static byte[] binary(int length) {
    return length < 0 ? null : TestFiles.plaintext(length);
  }

  private static byte[] hex(String digits) {
    return HexFormat.of().parseHex(digits);
  }
}
