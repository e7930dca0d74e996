package io.icebergcrypto.format;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonParser;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.testing.Fuzz;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * Hostile bytes: random ones, and mutations of real files. A parser reads a few KiB, regardless of
 * the bytes.
 */
class FormatFuzzTest {
  private static final int MOST_READ = 64 + 8 + 4096;

  private static final int[] NUMBERS = {
    0, 1, -1, 28, 255, 4096, 4097, 64 << 20, Integer.MAX_VALUE, Integer.MIN_VALUE
  };

  private final List<byte[]> files = new ArrayList<>();

  FormatFuzzTest() throws IOException {
    byte[] gcm = TestFiles.cryptoMetaData(false, null, new byte[8], true, null);
    byte[] ctr =
        TestFiles.cryptoMetaData(true, new byte[16], new byte[8], false, "kms:k1".getBytes(UTF_8));
    files.add(TestFiles.parquet(TestFiles.KEY, 10));
    files.add(TestFiles.parquet(null, 10));
    files.add(TestFiles.pare(TestFiles.footer(gcm, 10)));
    files.add(TestFiles.pare(TestFiles.footer(ctr, 10)));
    files.add(TestFiles.pare(TestFiles.footer(ctr, 5000)));
    files.add(TestFiles.ags1(new byte[0]));
    files.add(TestFiles.ags1(new byte[100]));
    files.add(TestFiles.vector("iceberg-rust-manifest-list.avro"));
  }

  @Test
  void inspectRandomBytes() {
    Fuzz.run(
        1,
        round -> {
          byte[] file = round.bytes(300);
          Fuzz.overwrite(
              file, 0, round.oneOf("", "PARE", "AGS1", "PAR1", "Obj\u0001", "{").getBytes(UTF_8));
          if (round.random().nextBoolean()) {
            Fuzz.overwrite(file, file.length - 4, "PARE".getBytes(UTF_8));
            Fuzz.overwrite(file, file.length - 8, Fuzz.littleEndian(round.random().nextInt(300)));
          }

          return inspect(file);
        });
  }

  @Test
  void inspectMutatedFiles() {
    Fuzz.run(1, round -> inspect(round.mutated(round.oneOf(files.toArray(byte[][]::new)))));
  }

  @Test
  void ags1Headers() {
    Fuzz.run(
        1,
        round -> {
          byte[] header = round.bytes(16);
          if (round.random().nextInt(8) > 0) {
            Fuzz.overwrite(header, 0, "AGS1".getBytes(UTF_8));
            Fuzz.overwrite(header, 4, Fuzz.littleEndian(round.number()));
          }

          long length =
              round.random().nextBoolean()
                  ? round.number()
                  : round.random().nextLong() >> round.random().nextInt(64);
          Ags1Layout layout = Ags1Layout.parse(header, length, "f");
          // The numbers have to add up to the file again.
          assertThat(layout.plaintextLength() + 28 * layout.blockCount() + 8).isEqualTo(length);
          long full = (layout.blockCount() - 1) * layout.blockSize();
          assertThat(layout.plaintextLength() - full).isBetween(0L, (long) layout.blockSize());
          return true;
        });
  }

  @Test
  void footers() throws IOException {
    byte[][] valid = new byte[16][];
    for (int i = 0; i < valid.length; i++) {
      valid[i] =
          TestFiles.cryptoMetaData(
              (i & 1) != 0,
              (i & 2) != 0 ? new byte[i] : null,
              new byte[8],
              (i & 4) != 0,
              (i & 8) != 0 ? new byte[20] : null);
    }

    Fuzz.run(
        1,
        round -> {
          byte[] footer = TestFiles.footer(round.mutated(round.oneOf(valid)), 50);
          PareFooter read = PareFooter.parse(footer, footer.length, footer.length + 12L, "f");
          assertThat(read.aadFileUniqueLength()).isBetween(0, footer.length);
          assertThat(read.keyMetadataLength()).isBetween(0, footer.length);
          return true;
        });
  }

  /** Hostile text, such as a path, is read as it was written. */
  @Test
  void textInJson() {
    Fuzz.run(
        1,
        round -> {
          String text = round.mutated("s3://bucket/db/\"t\"\\u0001/\ud83d\ude00\u2028.parquet");
          String json = Json.of(Map.of("path", text, "length", round.number()));
          assertThat(JsonParser.parseString(json).getAsJsonObject().get("path").getAsString())
              .isEqualTo(text);
          return round.random().nextInt(100) > 0; // it refuses nothing
        });
  }

  @Test
  void hugeNumbersTakeNoMemory() {
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    byte[] file = files.get(2).clone();
    long before = threads.getCurrentThreadAllocatedBytes();
    for (int number : NUMBERS) {
      Fuzz.overwrite(file, file.length - 8, Fuzz.littleEndian(number));
      inspect(file);
      Fuzz.overwrite(file, 0, "AGS1".getBytes(UTF_8));
      Fuzz.overwrite(file, 4, Fuzz.littleEndian(number));
      inspect(file);
      Fuzz.overwrite(file, 0, "PARE".getBytes(UTF_8));
    }
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(4L << 20);
  }

  private static boolean inspect(byte[] bytes) {
    CountingInputFile file = new CountingInputFile(bytes);
    try {
      FileInspection inspection = FileInspector.inspect(file);
      assertThat(inspection.toJson()).startsWith("{\"path\":");
      return true;
    } catch (IcebergCryptoException e) {
      assertThat(e.problem()).contains("s3://bucket/db/t/file");
      return false;
    } finally {
      assertThat(file.bytesRead()).isLessThanOrEqualTo(MOST_READ);
      assertThat(file.allClosed()).isTrue();
    }
  }
}
