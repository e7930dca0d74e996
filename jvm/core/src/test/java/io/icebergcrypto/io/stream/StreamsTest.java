package io.icebergcrypto.io.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Ags1Layout;
import io.icebergcrypto.io.checked.AuthenticatedStream;
import io.icebergcrypto.io.checked.ExpectedFile;
import io.icebergcrypto.metadata.forwarding.ForwardingInputFile;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.NoKms;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.iceberg.encryption.AesGcmInputFile;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.util.ByteBuffers;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Our streams against Iceberg's: each reads what the other wrote. */
class StreamsTest {
  private static final int BLOCK = Ags1Layout.ICEBERG_BLOCK_SIZE;

  private final StandardEncryptionManager iceberg =
      new StandardEncryptionManager(List.of(), "k1", 32, new NoKms());
  private final InMemoryOutputFile target = new InMemoryOutputFile("s3://bucket/db/t/file");
  private final NativeEncryptionOutputFile file = iceberg.encrypt(target);
  private final Random random = new Random(Fuzz.SEED);

  private byte[] plaintext(int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }

  /** In pieces of all sizes, some of them of a block and more, and some single bytes. */
  private void write(OutputFile to, byte[] plain) throws IOException {
    PositionOutputStream out = to.create();
    for (int at = 0; at < plain.length; ) {
      assertThat(out.getPos()).isEqualTo(at);
      int most = random.nextBoolean() ? 3 * BLOCK : 9000;
      int count = Math.min(plain.length - at, random.nextInt(most));
      if (count == 1) {
        out.write(plain[at]);
      } else {
        out.write(plain, at, count);
      }

      at += count;
    }

    out.close();
    if (out instanceof EncryptingStream) { // Iceberg's fails at the second time
      out.close();
    }

    assertThat(out.getPos()).isEqualTo(plain.length);
    assertThat(out.storedLength()).isEqualTo(target.toByteArray().length);
  }

  private AuthenticatedStream open(InputFile stored) {
    Ags1Layout layout = Ags1Layout.ofLength(stored.getLength(), stored.location());
    ExpectedFile expected = new ExpectedFile("db.t", stored.location(), stored.getLength());
    return new AuthenticatedStream(stored.newStream(), layout, file.keyMetadata(), expected);
  }

  private InputFile stored() {
    return target.toInputFile();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77})
  void icebergReadsWhatThisWrote(int length) throws IOException {
    byte[] plain = plaintext(length);
    write(
        new EncryptedOutput(file, () -> {}, stream -> stream, any -> any).encryptingOutputFile(),
        plain);
    NativeEncryptionKeyMetadata key = file.keyMetadata();
    AesGcmInputFile read =
        new AesGcmInputFile(
            stored(),
            ByteBuffers.toByteArray(key.encryptionKey()),
            ByteBuffers.toByteArray(key.aadPrefix()),
            stored().getLength());
    try (SeekableInputStream in = read.newStream()) {
      assertThat(in.readAllBytes()).isEqualTo(plain);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77})
  void thisReadsWhatIcebergWrote(int length) throws IOException {
    byte[] plain = plaintext(length);
    write(file.encryptingOutputFile(), plain);
    for (boolean ranges : new boolean[] {true, false}) {
      try (AuthenticatedStream in = open(new Recorded(stored(), ranges))) {
        assertThat(in.readAllBytes()).isEqualTo(plain);
        assertThat(in.read()).isEqualTo(-1);
        for (int i = 0; i < 8 && length > 0; i++) {
          int from = random.nextInt(length);
          int count =
              random.nextInt(Math.min(length - from, random.nextBoolean() ? 9 : length) + 1);
          byte[] expected = Arrays.copyOfRange(plain, from, from + count);
          byte[] got = new byte[count];
          if (random.nextBoolean()) {
            in.seek(from);
            assertThat(in.readNBytes(count)).isEqualTo(expected);
            assertThat(in.getPos()).isEqualTo(from + count);
          } else {
            in.readFully(from, got);
            assertThat(got).isEqualTo(expected);
          }
        }

        byte[] tail = new byte[Math.min(length, 10)];
        assertThat(in.readTail(tail)).isEqualTo(tail.length);
        assertThat(tail).isEqualTo(Arrays.copyOfRange(plain, length - tail.length, length));
        assertThatThrownBy(() -> in.readFully(length - 3, new byte[4]))
            .isExactlyInstanceOf(IcebergCryptoException.class)
            .hasMessageContaining("could not be read: java.io.EOFException: Cannot read 4 bytes");
      }
    }
  }

  @Test
  void aRangeCostsItsBlocksOnly() throws IOException {
    byte[] plain = plaintext(4 * BLOCK + 77);
    write(file.encryptingOutputFile(), plain);
    Recorded recorded = new Recorded(stored(), true);
    int storedBlock = BLOCK + 28;
    try (AuthenticatedStream in = open(recorded)) {
      in.readFully(3L * BLOCK + 5, new byte[100]);
      in.readFully(3L * BLOCK + 500, new byte[100]); // the same block: it is there
      assertThat(recorded.reads).containsExactly((8L + 3 * storedBlock) + "+" + storedBlock);
      recorded.reads.clear();
      in.readFully(BLOCK - 1, new byte[2 + BLOCK]); // blocks 0 to 2, the header with them
      assertThat(recorded.reads).containsExactly("0+" + (8 + 3 * storedBlock));
      recorded.reads.clear();
      in.seek(4L * BLOCK);
      assertThat(in.read()).isEqualTo(plain[4 * BLOCK] & 0xff);
      assertThat(recorded.reads).containsExactly((8L + 4 * storedBlock) + "+" + (77 + 28));
    }
  }

  /** S3FileIO asks once for a stream that is never moved: there is nothing to ask for ahead. */
  @Test
  void whatIsReadFromItsBeginningToItsEndIsOneRequest() throws IOException {
    byte[] plain = plaintext(3 * BLOCK + 77);
    write(file.encryptingOutputFile(), plain);
    Recorded recorded = new Recorded(stored(), false);
    try (AuthenticatedStream in = open(recorded)) {
      byte[] part = new byte[8192]; // as Avro reads
      int done = 0;
      for (int got = in.read(part); got >= 0; got = in.read(part)) {
        assertThat(part).startsWith(Arrays.copyOfRange(plain, done, done + got));
        done += got;
      }

      assertThat(done).isEqualTo(plain.length);
    }

    assertThat(recorded.seeks).isZero();
    long bytes =
        recorded.reads.stream().mapToLong(r -> Long.parseLong(r.replaceFirst(".*\\+", ""))).sum();
    assertThat(bytes).isEqualTo(target.toByteArray().length);
  }

  @Test
  void eachBlockIsCheckedInItsPlace() throws IOException {
    write(file.encryptingOutputFile(), plaintext(2 * BLOCK));
    byte[] bytes = target.toByteArray();
    byte[] exchanged = bytes.clone();
    System.arraycopy(bytes, 8, exchanged, 8 + BLOCK + 28, BLOCK + 28);
    byte[] flipped = bytes.clone();
    flipped[8 + BLOCK + 28 + 500] ^= 1;
    for (byte[] changed : List.of(exchanged, flipped)) {
      for (int count : new int[] {1, BLOCK}) { // into our buffer, and into the caller's
        try (AuthenticatedStream in = open(new InMemoryInputFile(changed))) {
          in.readFully(0, new byte[BLOCK]);
          byte[] got = new byte[count];
          assertThatThrownBy(() -> in.readFully(BLOCK, got))
              .isInstanceOf(TamperedException.class)
              .hasMessageContaining("its authentication tag does not match its key")
              .hasRootCauseInstanceOf(java.security.GeneralSecurityException.class);
          assertThatThrownBy(() -> in.readFully(0, got)).isInstanceOf(TamperedException.class);
          assertThat(got).containsOnly(0);
        }
      }
    }
  }

  @Test
  void theHeaderIsChecked() throws IOException {
    write(file.encryptingOutputFile(), plaintext(100));
    for (int i = 0; i < 8; i++) {
      byte[] changed = target.toByteArray();
      changed[i] ^= i == 3 ? 64 : 1; // AGS0 and AGSq: those from AGS2 on are later versions
      try (AuthenticatedStream in = open(new InMemoryInputFile(changed))) {
        assertThatThrownBy(in::read)
            .isInstanceOf(i < 4 ? TamperedException.class : NotSupportedException.class);
      }
    }
  }

  @Test
  void aSmallFileTakesLittleMemory() throws IOException {
    byte[] plain = plaintext(4096);
    InMemoryOutputFile other = new InMemoryOutputFile();
    long written =
        allocated(
            () -> {
              NativeEncryptionOutputFile ours =
                  new EncryptedOutput(
                      iceberg.encrypt(other), () -> {}, stream -> stream, any -> any);
              try (PositionOutputStream out = ours.encryptingOutputFile().createOrOverwrite()) {
                out.write(plain);
              }
            });
    write(file.encryptingOutputFile(), plain);
    InputFile stored = stored();
    long read =
        allocated(
            () -> {
              try (AuthenticatedStream in = open(stored)) {
                in.readNBytes(4000);
              }
            });
    // Iceberg's streams take 2 MiB each
    assertThat(written).as("bytes to write 4 KB").isLessThan(100_000);
    assertThat(read).as("bytes to read 4 KB").isLessThan(100_000);
  }

  @FunctionalInterface
  private interface Run {
    void run() throws IOException;
  }

  /** How many bytes this thread takes, when all classes are there. */
  private static long allocated(Run run) throws IOException {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 5; i++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      run.run();
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }

    return least;
  }

  /** Records what is read, as position+count. */
  private static final class Recorded implements ForwardingInputFile {
    private final InputFile file;
    private final boolean ranges;
    private final List<String> reads = new ArrayList<>();
    private int seeks = 0;

    private Recorded(InputFile file, boolean ranges) {
      this.file = file;
      this.ranges = ranges;
    }

    @Override
    public InputFile under() {
      return file;
    }

    @Override
    public SeekableInputStream newStream() {
      return ranges ? new RangeStream() : new Stream();
    }

    private class Stream extends SeekableInputStream {
      final SeekableInputStream in = file.newStream();

      @Override
      public int read() throws IOException {
        return in.read();
      }

      @Override
      public int read(byte[] bytes, int offset, int count) throws IOException {
        reads.add(in.getPos() + "+" + count);
        return in.read(bytes, offset, count);
      }

      @Override
      public void seek(long position) throws IOException {
        seeks++;
        in.seek(position);
      }

      @Override
      public long getPos() throws IOException {
        return in.getPos();
      }
    }

    /** Its position is anywhere after a range, as it may be. */
    private final class RangeStream extends Stream implements RangeReadable {
      @Override
      public void readFully(long from, byte[] bytes, int offset, int count) throws IOException {
        in.seek(from);
        reads.add(from + "+" + count);
        assertThat(in.readNBytes(bytes, offset, count)).isEqualTo(count);
      }

      @Override
      public int readTail(byte[] bytes, int offset, int count) {
        throw new AssertionError("the end that storage has");
      }
    }
  }

  /** Storage that fails in a write, from some number of writes on, and has to be closed. */
  private static final class FailingStorage extends PositionOutputStream {
    private int left;
    private int closed = 0;

    private FailingStorage(int writes) {
      this.left = writes;
    }

    @Override
    public void write(int b) throws IOException {
      if (left-- <= 0) {
        throw new IOException("the disk is on fire");
      }
    }

    @Override
    public void write(byte[] bytes, int offset, int count) throws IOException {
      write(0);
    }

    @Override
    public long getPos() {
      return 0;
    }

    @Override
    public void close() throws IOException {
      closed++;
      throw new IOException("the connection is lost");
    }
  }

  @Test
  void theStorageIsClosedWhenTheLastBlockCannotBeWritten() throws IOException {
    for (int writes = 0; writes < 2; writes++) { // the header, and the block
      FailingStorage storage = new FailingStorage(writes);
      List<Long> written = new ArrayList<>();
      EncryptingStream out = new EncryptingStream(storage, file.keyMetadata(), written::add);
      out.write(plaintext(100));
      assertThatThrownBy(out::close)
          .hasMessage("the disk is on fire")
          .satisfies(e -> assertThat(e.getSuppressed()[0]).hasMessage("the connection is lost"));
      out.close();
      assertThat(storage.closed).isEqualTo(1);
      assertThat(written).isEmpty();
    }
  }
}
