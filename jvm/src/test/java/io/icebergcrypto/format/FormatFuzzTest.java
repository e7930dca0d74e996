package io.icebergcrypto.format;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.IcebergCryptoException;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmCtrV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.AesGcmV1;
import org.apache.iceberg.shaded.org.apache.parquet.format.EncryptionAlgorithm;
import org.apache.iceberg.shaded.org.apache.parquet.format.FileCryptoMetaData;
import org.apache.iceberg.shaded.org.apache.parquet.format.Util;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Hostile bytes: random ones, and mutations of real files. A parser may give a value or an {@link
 * IcebergCryptoException}, nothing else, and reads a few KiB whatever the bytes say. The seed is
 * fixed, so a failure repeats; its message has the seed of its round.
 */
@Timeout(60)
class FormatFuzzTest {
  private static final int ROUNDS = 20_000;
  private static final int MOST_READ = 64 + 8 + 4096;

  private static final int[] NUMBERS = {
    0,
    1,
    -1,
    7,
    8,
    27,
    28,
    29,
    32,
    33,
    36,
    44,
    255,
    256,
    4095,
    4096,
    4097,
    1 << 20,
    64 << 20,
    Integer.MAX_VALUE,
    Integer.MIN_VALUE
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
    String[] heads = {"", "PARE", "AGS1", "PAR1", "Obj\u0001", "{"};
    int values = 0;
    for (int round = 0; round < ROUNDS; round++) {
      Random random = new Random(round);
      byte[] file = randomBytes(random, 300);
      String head = heads[random.nextInt(heads.length)];
      overwrite(file, 0, head.getBytes(UTF_8));
      if (random.nextBoolean()) {
        overwrite(file, file.length - 4, "PARE".getBytes(UTF_8));
        overwrite(file, file.length - 8, littleEndian(random.nextInt(300)));
      }
      values += inspect(file, "random bytes, seed " + round) ? 1 : 0;
    }
    assertThat(values).isBetween(1, ROUNDS - 1);
  }

  @Test
  void inspectMutatedFiles() {
    int values = 0;
    for (int round = 0; round < ROUNDS; round++) {
      Random random = new Random(round);
      byte[] file = files.get(random.nextInt(files.size())).clone();
      for (int i = random.nextInt(4); i >= 0; i--) {
        file = mutate(file, random);
      }
      values += inspect(file, "mutated file, seed " + round) ? 1 : 0;
    }
    assertThat(values).isBetween(ROUNDS / 100, ROUNDS - 1);
  }

  @Test
  void ags1Headers() {
    int values = 0;
    for (int round = 0; round < ROUNDS; round++) {
      Random random = new Random(round);
      byte[] header = randomBytes(random, 16);
      if (random.nextInt(8) > 0) {
        overwrite(header, 0, "AGS1".getBytes(UTF_8));
        overwrite(header, 4, littleEndian(number(random)));
      }
      long length = random.nextBoolean() ? number(random) : random.nextLong() >> random.nextInt(64);
      try {
        Ags1Layout layout = Ags1Layout.parse(header, length, "f");
        // The numbers have to add up to the file again.
        assertThat(layout.plaintextLength() + 28 * layout.blockCount() + 8).isEqualTo(length);
        long full = (layout.blockCount() - 1) * layout.blockSize();
        assertThat(layout.plaintextLength() - full).isBetween(0L, (long) layout.blockSize());
        values++;
      } catch (IcebergCryptoException e) {
        assertThat(e.hint()).isNotEmpty();
      } catch (RuntimeException e) {
        throw new AssertionError("header, seed " + round, e);
      }
    }
    assertThat(values).isBetween(ROUNDS / 100, ROUNDS - 1);
  }

  /** What our reader accepts, Parquet's own Thrift code reads as the same thing. */
  @Test
  void footersAgainstParquetsThriftCode() throws IOException {
    List<byte[]> seeds = new ArrayList<>();
    for (int i = 0; i < 16; i++) {
      seeds.add(
          TestFiles.cryptoMetaData(
              (i & 1) != 0,
              (i & 2) != 0 ? new byte[i] : null,
              new byte[8],
              (i & 4) != 0,
              (i & 8) != 0 ? new byte[20] : null));
    }
    int values = 0;
    for (int round = 0; round < ROUNDS; round++) {
      Random random = new Random(round);
      byte[] crypto = seeds.get(random.nextInt(seeds.size())).clone();
      for (int i = random.nextInt(4); i >= 0; i--) {
        crypto = random.nextInt(10) == 0 ? randomBytes(random, 60) : mutate(crypto, random);
      }
      byte[] footer = TestFiles.footer(crypto, 50);
      try {
        PareFooter ours = PareFooter.parse(footer, footer.length, footer.length + 12L, "f");
        assertThat(ours).as("footer, seed %d", round).isEqualTo(parquets(footer));
        values++;
      } catch (IcebergCryptoException e) {
        assertThat(e.hint()).isNotEmpty();
      } catch (RuntimeException e) {
        throw new AssertionError("footer, seed " + round, e);
      }
    }
    assertThat(values).isBetween(ROUNDS / 100, ROUNDS - 1);
  }

  @Test
  void hugeNumbersTakeNoMemory() {
    com.sun.management.ThreadMXBean threads =
        (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    byte[] file = files.get(2).clone();
    long before = threads.getCurrentThreadAllocatedBytes();
    for (int number : NUMBERS) {
      overwrite(file, file.length - 8, littleEndian(number));
      inspect(file, "footer length " + number);
      overwrite(file, 0, "AGS1".getBytes(UTF_8));
      overwrite(file, 4, littleEndian(number));
      inspect(file, "block length " + number);
      overwrite(file, 0, "PARE".getBytes(UTF_8));
    }
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(4L << 20);
  }

  private static PareFooter parquets(byte[] footer) throws IOException {
    FileCryptoMetaData read = Util.readFileCryptoMetaData(new ByteArrayInputStream(footer));
    EncryptionAlgorithm algorithm = read.getEncryption_algorithm();
    byte[] keyMetadata = read.getKey_metadata();
    if (algorithm.isSetAES_GCM_V1()) {
      AesGcmV1 gcm = algorithm.getAES_GCM_V1();
      return new PareFooter(
          footer.length,
          PareFooter.Algorithm.AES_GCM_V1,
          gcm.isSetAad_prefix(),
          length(gcm.getAad_file_unique()),
          gcm.isSupply_aad_prefix(),
          length(keyMetadata));
    }
    AesGcmCtrV1 ctr = algorithm.getAES_GCM_CTR_V1();
    return new PareFooter(
        footer.length,
        PareFooter.Algorithm.AES_GCM_CTR_V1,
        ctr.isSetAad_prefix(),
        length(ctr.getAad_file_unique()),
        ctr.isSupply_aad_prefix(),
        length(keyMetadata));
  }

  private static int length(byte[] bytes) {
    return bytes == null ? 0 : bytes.length;
  }

  /** Whether there was a value; fails on an exception of another kind. */
  private static boolean inspect(byte[] bytes, String what) {
    CountingInputFile file = new CountingInputFile(bytes);
    try {
      FileInspection inspection = FileInspector.inspect(file);
      assertThat(inspection.toJson()).startsWith("{\"path\": ");
      return true;
    } catch (IcebergCryptoException e) {
      assertThat(e.problem()).contains("s3://bucket/db/t/file");
      return false;
    } catch (RuntimeException e) {
      throw new AssertionError(what, e);
    } finally {
      assertThat(file.bytesRead()).as(what).isLessThanOrEqualTo(MOST_READ);
      assertThat(file.allClosed()).as(what).isTrue();
    }
  }

  private static byte[] mutate(byte[] bytes, Random random) {
    if (bytes.length == 0) {
      return randomBytes(random, 20);
    }
    // Headers and footers are at the ends: every other change goes there.
    int at = random.nextInt(bytes.length);
    switch (random.nextInt(4)) {
      case 0 -> at = Math.min(at, random.nextInt(16));
      case 1 -> at = Math.max(at, bytes.length - 1 - random.nextInt(130));
      default -> {}
    }
    byte[] result = bytes.clone();
    switch (random.nextInt(7)) {
      case 0 -> result[at] ^= (byte) (1 << random.nextInt(8));
      case 1 -> result[at] = (byte) random.nextInt();
      case 2 -> result[at] = (byte) 0xff;
      case 3 -> overwrite(result, at, littleEndian(number(random)));
      case 4 -> result = Arrays.copyOf(bytes, at);
      case 5 -> result = splice(bytes, at, at, randomBytes(random, 12));
      default -> result = splice(bytes, at, Math.min(bytes.length, at + 9), new byte[0]);
    }
    return result;
  }

  private static byte[] splice(byte[] bytes, int from, int to, byte[] between) {
    return ByteBuffer.allocate(from + between.length + bytes.length - to)
        .put(bytes, 0, from)
        .put(between)
        .put(bytes, to, bytes.length - to)
        .array();
  }

  private static void overwrite(byte[] target, int at, byte[] source) {
    for (int i = Math.max(0, -at); i < source.length && at + i < target.length; i++) {
      target[at + i] = source[i];
    }
  }

  private static byte[] littleEndian(int number) {
    return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(number).array();
  }

  private static int number(Random random) {
    return random.nextBoolean() ? NUMBERS[random.nextInt(NUMBERS.length)] : random.nextInt(200_000);
  }

  private static byte[] randomBytes(Random random, int most) {
    byte[] bytes = new byte[random.nextInt(most + 1)];
    random.nextBytes(bytes);
    return bytes;
  }
}
