package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.spark.inspect.KeyedInspection;
import io.icebergcrypto.spark.verify.ParquetMap.Module;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Every module of Parquet files that Iceberg wrote. */
class DeepParquetTest {
  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource({"16,2000", "24,700", "32,2000", "16,1"})
  void cleanFiles(int keyLength, int rows) throws IOException {
    EncryptedFile file = EncryptedFile.parquet(rows, keyLength, EncryptedFile.MANY_PARTS);

    FileResult checked = file.check(Depth.DEEP);

    assertThat(checked)
        .isEqualTo(new FileResult(FileMagic.PARE, file.bytes().length, file.bytes().length, null));
  }

  @Test
  void aFileOfManyReadsIsReadOnce() throws IOException {
    Map<String, String> properties =
        Map.of(
            "write.parquet.compression-codec", "uncompressed",
            "write.parquet.dict-size-bytes", "1",
            "write.parquet.page-size-bytes", "3000000");
    EncryptedFile file = EncryptedFile.parquet(50_000, 16, properties, "x".repeat(200));
    assertThat(file.bytes().length).isGreaterThan(9 << 20);

    FileResult checked = file.check(Depth.DEEP);

    assertThat(checked.words()).isNull();
    assertThat(checked.bytesRead()).isEqualTo(file.bytes().length);
    assertThat(file.flipped(5_000_000).check(Depth.DEEP).words())
        .matches("data page \\d of column name in row group 0 fails authentication.*");
  }

  @Test
  void aFlippedBitIsFoundInItsModule() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(1200, 16, EncryptedFile.MANY_PARTS);
    List<Module> modules = ParquetMap.of(file, folder);
    Set<String> kinds =
        modules.stream()
            .map(module -> module.name().replaceAll(" (\\d+ )?of column.*", ""))
            .collect(Collectors.toCollection(TreeSet::new));
    assertThat(kinds)
        .containsExactly(
            "data page",
            "the bloom filter",
            "the column index",
            "the dictionary page",
            "the header of data page",
            "the header of the bloom filter",
            "the header of the dictionary page",
            "the offset index");
    assertThat(modules).anyMatch(module -> module.name().endsWith("row group 1"));
    for (Module module : modules) {
      long end = module.start() + module.length();
      for (long at : new long[] {module.start() + 4, (module.start() + end) / 2, end - 1}) {
        FileResult checked = file.flipped(at).check(Depth.DEEP);
        assertThat(checked.unchecked()).isFalse();
        assertThat(checked.words())
            .startsWith(module.name() + " fails authentication with the file's key");
      }
    }
  }

  @Test
  void noBitOfAFileCanBeFlipped() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(30, 16, EncryptedFile.MANY_PARTS);
    int length = file.bytes().length;
    int tail = length - 8;
    int footer = tail - littleEndian(file.bytes(), tail);
    for (int at = 0; at < length; at++) {
      boolean plaintext = at < 4 || at >= footer && at < footer + 40 || at >= tail;
      for (int bit = 0; bit < (plaintext ? 8 : 1); bit++) {
        byte[] flipped = file.bytes().clone();
        flipped[at] ^= (byte) (1 << bit);
        FileResult checked = file.with(flipped).check(Depth.DEEP);
        assertThat(checked.words()).as("bit %d of byte %d", bit, at).isNotNull();
        assertThat(checked.unchecked() && !plaintext).as("bit %d of byte %d", bit, at).isFalse();
      }
    }
  }

  @Test
  void aFlippedBitInTheFooter() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    FileResult checked = file.flipped(file.bytes().length - 30).check(Depth.DEEP);
    assertThat(checked.words()).startsWith("the footer fails authentication with the file's key");
  }

  @Test
  void anotherKeyAndAnotherFile() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    EncryptedFile other = EncryptedFile.parquet(10, 16, Map.of());
    String footer = "the footer fails authentication with the file's key";
    assertThat(file.with(other.bytes()).check(Depth.DEEP).words()).startsWith(footer);
    // the same key, another prefix: only the AAD tells the two apart
    EncryptedFile wrongPrefix =
        new EncryptedFile("parquet", file.bytes(), new Keys(file.key(), other.aadPrefix()));
    assertThat(wrongPrefix.check(Depth.DEEP).words()).startsWith(footer);
    EncryptedFile noPrefix = new EncryptedFile("parquet", file.bytes(), new Keys(file.key(), null));
    assertThat(noPrefix.check(Depth.DEEP).words()).contains("AAD prefix");
  }

  @Test
  void swappedPages() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(2000, 16, EncryptedFile.MANY_PARTS);
    Map<Long, Module> sameLength = new HashMap<>();
    for (Module module : ParquetMap.of(file, folder)) {
      Module other =
          module.name().startsWith("data page") ? sameLength.put(module.length(), module) : null;
      if (other != null) {
        byte[] swapped = file.bytes().clone();
        copy(file.bytes(), module, swapped, other);
        copy(file.bytes(), other, swapped, module);
        assertThat(file.with(swapped).check(Depth.DEEP).words()).startsWith(other.name());
        return;
      }
    }

    throw new AssertionError("no two pages of the same length");
  }

  private static void copy(byte[] from, Module module, byte[] to, Module place) {
    System.arraycopy(from, (int) module.start(), to, (int) place.start(), (int) module.length());
  }

  /** Parquet's Java writer leaves the levels of such pages in plaintext. */
  @Test
  void pagesOfVersionTwoAreNotAllEncrypted() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of("write.parquet.page-version", "v2"));
    assertThat(file.check(Depth.DEEP).words())
        .startsWith("data page 0 of column name in row group 0 is not encrypted as a whole: its");
    HexFormat hex = HexFormat.of();
    KeyedInspection inspection =
        KeyedInspection.withKey(
            new InMemoryInputFile("s3://b/f", file.bytes()),
            hex.formatHex(file.key()),
            hex.formatHex(file.aadPrefix()));
    assertThatThrownBy(() -> inspection.check(null))
        .isInstanceOf(PlaintextException.class)
        .hasMessageStartingWith("s3://b/f: data page 0 of column name in row group 0 is not enc");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 8, 100})
  void cutOffAndAppended(int count) throws IOException {
    EncryptedFile file = EncryptedFile.parquet(100, 16, Map.of());
    int length = file.bytes().length;
    for (Depth depth : List.of(Depth.STRUCTURE, Depth.DEEP)) {
      byte[] cut = Arrays.copyOf(file.bytes(), length - count);
      byte[] longer = Arrays.copyOf(file.bytes(), length + count);
      assertThat(file.with(cut).check(depth, length, file.keyMetadata()).words())
          .isEqualTo(
              String.format(
                  "it has %d bytes, expected %d: it was cut off", length - count, length));
      assertThat(file.with(longer).check(depth, length, file.keyMetadata()).words())
          .isEqualTo(
              String.format(
                  "it has %d bytes, expected %d: bytes were appended", length + count, length));
    }
  }

  /** Bytes in front of the footer, with lengths that agree. */
  @Test
  void bytesOfNoModule() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(100, 16, Map.of());
    int length = file.bytes().length;
    int footer =
        8 + ByteBuffer.wrap(file.bytes()).order(ByteOrder.LITTLE_ENDIAN).getInt(length - 8);
    byte[] longer = new byte[length + 5];
    System.arraycopy(file.bytes(), 0, longer, 0, length - footer);
    System.arraycopy(file.bytes(), length - footer, longer, length - footer + 5, footer);
    assertThat(file.with(longer).check(Depth.DEEP).words())
        .isEqualTo(
            String.format(
                "bytes %d to %d belong to no module of the file",
                length - footer, length - footer + 4));
  }

  private static int littleEndian(byte[] bytes, int at) {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getInt(at);
  }
}
