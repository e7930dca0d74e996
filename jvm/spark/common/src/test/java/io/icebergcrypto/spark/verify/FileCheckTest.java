package io.icebergcrypto.spark.verify;

import static io.icebergcrypto.ProblemCode.APPENDED;
import static io.icebergcrypto.ProblemCode.MISSING;
import static io.icebergcrypto.ProblemCode.NO_KEY;
import static io.icebergcrypto.ProblemCode.NO_LENGTH;
import static io.icebergcrypto.ProblemCode.PLAINTEXT;
import static io.icebergcrypto.ProblemCode.TAMPERED;
import static io.icebergcrypto.ProblemCode.TRUNCATED;
import static io.icebergcrypto.ProblemCode.UNREADABLE;
import static io.icebergcrypto.ProblemCode.WRONG_FORMAT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.format.FileMagic;
import io.icebergcrypto.spark.verify.deep.FileKey;
import io.icebergcrypto.testing.BytesFile;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.zip.ZipException;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.shaded.org.apache.avro.AvroRuntimeException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What is checked at each depth, and what is said when it cannot be. */
class FileCheckTest {
  private static final FileResult FINE = new FileResult(FileMagic.AGS1, 1, 1, null);

  @Test
  void depthsByFlags() {
    assertThat(Depth.of(false, false)).isEqualTo(Depth.MAGIC);
    assertThat(Depth.of(true, false)).isEqualTo(Depth.STRUCTURE);
    assertThat(Depth.of(false, true)).isEqualTo(Depth.DEEP);
    assertThat(Depth.of(true, true)).isEqualTo(Depth.DEEP);
  }

  @ParameterizedTest
  @EnumSource
  void cleanFiles(Depth depth) throws IOException {
    EncryptedFile parquet = EncryptedFile.parquet(10, 16, Map.of());
    EncryptedFile stream = EncryptedFile.stream(1000, 32);
    for (EncryptedFile file : List.of(parquet, stream)) {
      FileResult checked = file.check(depth);
      assertThat(checked.words()).isNull();
      assertThat(checked.encrypted()).isTrue();
      assertThat(checked.unchecked()).isFalse();
      assertThat(checked.length()).isEqualTo(file.bytes().length);
      assertThat(file.check(depth, -1).length()).isEqualTo(file.bytes().length);
    }
  }

  @Test
  void magicReadsTheEnds() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(1000, 16, Map.of());
    assertThat(file.check(Depth.MAGIC, -1, null))
        .isEqualTo(new FileResult(FileMagic.PARE, file.bytes().length, 72, null));
    assertThat(EncryptedFile.stream(1000, 16).check(Depth.MAGIC, 1036, null))
        .isEqualTo(new FileResult(FileMagic.AGS1, 1036, 64, null));
  }

  @Test
  void parquetWithAnotherTail() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    byte[] appended = Arrays.copyOf(file.bytes(), file.bytes().length + 1);
    byte[] head = "PARE".getBytes(StandardCharsets.US_ASCII);
    for (byte[] bytes : List.of(appended, Arrays.copyOf(appended, 500), head)) {
      for (boolean ranges : new boolean[] {true, false}) {
        FileResult checked =
            check(Depth.MAGIC, new Storage(bytes, ranges), file.bytes().length, null);
        assertThat(checked.words()).startsWith("it starts with PARE, but does not end with it");
        assertThat(checked.unchecked()).isFalse();
      }
    }
  }

  /** The end of an object is asked for as such, without a request for its length. */
  @Test
  void magicAsksObjectStorageForNoLength() throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    Storage storage = new Storage(file.bytes(), true);
    storage.length = new AssertionError("a request for the length");
    assertThat(check(Depth.MAGIC, storage, 5, null).words()).isNull();
  }

  @ParameterizedTest
  @EnumSource
  void plaintextAndWrongFormats(Depth depth) throws IOException {
    EncryptedFile stream = EncryptedFile.stream(1000, 16);
    EncryptedFile asParquet = new EncryptedFile("parquet", stream.bytes(), stream.metadata());
    assertThat(asParquet.check(depth).words()).startsWith("it starts with AGS1, expected PARE");
    EncryptedFile plain = stream.with("Obj\u0001...".getBytes(StandardCharsets.US_ASCII));
    FileResult checked = plain.check(depth);
    assertThat(checked.words()).isEqualTo("it is not encrypted: it starts with AVRO");
    assertThat(checked.encrypted()).isFalse();
    assertThat(stream.with(new byte[0]).check(depth).words()).isEqualTo("it is empty");
  }

  @ParameterizedTest
  @EnumSource(names = {"STRUCTURE", "DEEP"})
  void lengthsThatDisagree(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.stream(1000, 16);
    assertThat(file.check(depth, 1037).words())
        .isEqualTo("the table's metadata gives its length as 1037 bytes, its key metadata as 1036");
  }

  @ParameterizedTest
  @EnumSource(names = {"STRUCTURE", "DEEP"})
  void keyMetadata(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.stream(1000, 16);
    assertThat(file.check(depth, 1036, null).words()).isEqualTo("the table has no key for it");
    ByteBuffer claims2GiB = ByteBuffer.wrap(new byte[] {1, -1, -1, -1, -1, 15});
    for (ByteBuffer bad : List.of(ByteBuffer.allocate(0), ByteBuffer.allocate(9), claims2GiB)) {
      assertThat(file.check(depth, 1036, bad).words())
          .startsWith("it cannot be read: its key metadata cannot be read");
      assertThat(file.check(depth, 1036, bad).unchecked()).isTrue();
    }

    ByteBuffer later = file.keyMetadata();
    later.put(later.position(), (byte) 2);
    assertThat(file.check(depth, 1036, later).words())
        .startsWith("it cannot be read: its key metadata has version 2");

    Keys shortKey = new Keys(new byte[5], new byte[16], 1036L);
    assertThat(file.check(depth, 1036, shortKey.buffer()).words())
        .startsWith("it cannot be read: its key metadata cannot be read");
    ByteBuffer metadata = file.keyMetadata();
    int position = metadata.position();
    file.check(depth, 1036, metadata);
    assertThat(metadata.position()).isEqualTo(position);
  }

  @ParameterizedTest
  @EnumSource(names = {"STRUCTURE", "DEEP"})
  void aHeaderThatNoReaderTakes(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.stream(1000, 16);
    byte[] otherBlocks = file.bytes().clone();
    otherBlocks[6] = 8;
    assertThat(file.with(otherBlocks).check(depth).words())
        .startsWith("its header gives blocks of 524288 bytes");
    EncryptedFile parquet = EncryptedFile.parquet(10, 16, Map.of());
    byte[] otherFooter = parquet.bytes().clone();
    otherFooter[otherFooter.length - 6] = 100;
    assertThat(parquet.with(otherFooter).check(depth).words()).contains("its last bytes give");
  }

  @ParameterizedTest
  @EnumSource
  void storageThatFails(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    List<Throwable> outages =
        List.of(
            new IOException("connection reset"),
            new IllegalStateException("connection pool shut down"),
            new IcebergCryptoException("KMS down", "fix it"));
    for (Throwable outage : outages) {
      Storage onOpen = new Storage(file.bytes(), false);
      onOpen.open = outage;
      Storage onRead = new Storage(file.bytes(), false);
      onRead.read = outage;
      for (Storage storage : List.of(onOpen, onRead)) {
        FileResult checked = check(depth, storage, file.bytes().length, file.keyMetadata());
        assertThat(checked.unchecked()).isTrue();
        assertThat(checked.magic()).isNull();
        assertThat(checked.words()).contains(outage.getMessage().substring(0, 4));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void missingFiles(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    List<RuntimeException> answers =
        List.of(new NotFoundException("no such file"), new IllegalStateException("status 404"));
    for (RuntimeException answer : answers) {
      Storage missing = new Storage(file.bytes(), false);
      missing.open = answer;
      missing.length = answer;
      missing.exists = false;
      FileResult checked = check(depth, missing, -1, file.keyMetadata());
      assertThat(checked.words()).isEqualTo("it does not exist");
      assertThat(checked.unchecked()).isFalse();
    }
  }

  /** A file that is deleted, or a connection that breaks, half-way: the first bytes were right. */
  @ParameterizedTest
  @EnumSource
  void filesThatVanishWhileTheyAreRead(Depth depth) throws IOException {
    List<EncryptedFile> files = new ArrayList<>(List.of(EncryptedFile.parquet(10, 16, Map.of())));
    if (depth == Depth.DEEP) {
      files.add(EncryptedFile.stream(20 << 20, 16)); // longer than what is read at once
    }

    List<Exception> failures =
        List.of(
            new NotFoundException("no such file"),
            new FileNotFoundException("no such file"),
            new IOException("connection reset"));
    for (EncryptedFile file : files) {
      for (Exception failure : failures) {
        for (boolean exists : new boolean[] {true, false}) {
          Storage storage = new Storage(file.bytes(), false);
          storage.read = failure;
          storage.readFrom = file.bytes().length / 2;
          storage.exists = exists;
          int length = file.bytes().length;
          FileResult checked =
              new FileCheck(depth)
                  .check(FileKind.DATA, file.format(), storage, length, file.keyMetadata());
          assertThat(checked.code()).isEqualTo(exists ? UNREADABLE : MISSING);
          assertThat(checked.words())
              .startsWith(exists ? "it could not be read: " : "it does not exist");
        }
      }
    }
  }

  /** Without permission, Hadoop's local file system says that the file does not exist. */
  @ParameterizedTest
  @EnumSource
  void filesWithoutAccess(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    Storage denied = new Storage(file.bytes(), false);
    Exception cause = new FileNotFoundException("/t/f (Permission denied)");
    denied.open = new NotFoundException(cause, "no such file");
    FileResult checked = check(depth, denied, file.bytes().length, file.keyMetadata());
    assertThat(checked.words()).startsWith("it could not be read: ").contains("Permission denied");
    assertThat(checked.unchecked()).isTrue();
  }

  /** A file whose bytes the storage itself finds changed. */
  @ParameterizedTest
  @EnumSource
  void checksumsOfTheStorage(Depth depth) throws IOException {
    EncryptedFile file = EncryptedFile.parquet(10, 16, Map.of());
    Storage storage = new Storage(file.bytes(), false);
    storage.read = new ChecksumException("checksum error at 0", 0);
    FileResult checked = check(depth, storage, file.bytes().length, file.keyMetadata());
    assertThat(checked.unchecked()).as("the checksum may be the one that is wrong").isTrue();
    assertThat(checked.words()).contains("checksum error");
  }

  @Test
  void aFileThatIsCutOffWhileItIsRead() throws IOException {
    EncryptedFile file = EncryptedFile.stream(20 << 20, 16);
    int length = file.bytes().length;
    BytesFile storage = new BytesFile(Arrays.copyOf(file.bytes(), 10 << 20), length);
    FileResult checked =
        new FileCheck(Depth.DEEP).check(FileKind.DATA, "avro", storage, -1, file.keyMetadata());
    assertThat(checked.words())
        .isEqualTo(
            "its storage ended the read after 10485760 bytes, but gives its length as "
                + file.bytes().length);
    assertThat(checked.unchecked()).isTrue();
  }

  @Test
  void eachCauseHasItsCode() throws IOException {
    EncryptedFile stream = EncryptedFile.stream(1000, 16);
    byte[] longer = Arrays.copyOf(stream.bytes(), 1037);
    byte[] shorter = Arrays.copyOf(stream.bytes(), 1035);
    byte[] plain = "Obj\u0001...".getBytes(StandardCharsets.US_ASCII);
    EncryptedFile asParquet = new EncryptedFile("parquet", stream.bytes(), stream.metadata());
    ByteBuffer key = stream.keyMetadata();
    assertThat(stream.check(Depth.DEEP).code()).isNull();
    assertThat(stream.with(plain).check(Depth.MAGIC).code()).isEqualTo(PLAINTEXT);
    assertThat(stream.with(new byte[0]).check(Depth.MAGIC).code()).isEqualTo(TRUNCATED);
    assertThat(stream.with(shorter).check(Depth.DEEP, -1, key).code()).isEqualTo(TRUNCATED);
    assertThat(stream.with(longer).check(Depth.DEEP, -1, key).code()).isEqualTo(APPENDED);
    assertThat(stream.check(Depth.DEEP, 1037).code()).isEqualTo(TAMPERED);
    assertThat(stream.check(Depth.DEEP, 1000).code()).as("the content's length").isNull();
    ByteBuffer noLength = new Keys(stream.key(), stream.aadPrefix()).buffer();
    assertThat(stream.check(Depth.DEEP, -1, noLength).code()).isEqualTo(NO_LENGTH);
    assertThat(stream.flipped(500).check(Depth.DEEP, -1, noLength).code()).isEqualTo(TAMPERED);
    assertThat(stream.check(Depth.DEEP, 1036, noLength).code()).isNull();
    assertThat(stream.check(Depth.DEEP, 1000, noLength).code()).as("as iceberg-rust").isNull();
    assertThat(stream.check(Depth.DEEP, 1100, noLength).code()).isEqualTo(TRUNCATED);
    assertThat(stream.check(Depth.DEEP, 900, noLength).code()).isEqualTo(APPENDED);
    assertThat(stream.check(Depth.DEEP, 1036, null).code()).isEqualTo(NO_KEY);
    assertThat(asParquet.check(Depth.MAGIC).code()).isEqualTo(WRONG_FORMAT);
    assertThat(stream.flipped(500).check(Depth.DEEP).code()).isEqualTo(TAMPERED);
    EncryptedFile parquet = EncryptedFile.parquet(10, 16, Map.of());
    byte[] cut = Arrays.copyOf(parquet.bytes(), 500);
    assertThat(parquet.with(cut).check(Depth.MAGIC).code()).isEqualTo(TRUNCATED);
  }

  /** The words of an error may quote anything: a path, what a KMS says. */
  @Test
  void codesOfFailuresAreOfTheirTypes() {
    String words = "is not encrypted, has no key, does not exist, was cut off";
    Map<RuntimeException, ProblemCode> codes =
        Map.of(
            new NotFoundException(words), // something else was not there
            UNREADABLE,
            new PlaintextException(words, ""),
            PLAINTEXT,
            new TamperedException(words, ""),
            TAMPERED,
            new BadWrappedKeyException(words, ""),
            TAMPERED,
            new TamperedException(NO_KEY, words, "", null).inTable("t"),
            NO_KEY,
            new UncheckedIOException(new ChecksumException(words, 0)),
            UNREADABLE,
            new KeyNotFoundException(words, ""),
            UNREADABLE,
            new IllegalStateException(words),
            UNREADABLE);
    codes.forEach(
        (failure, code) -> {
          assertThat(FailedCheck.of(1, failure).code()).as("%s", failure).isEqualTo(code);
          assertThat(FailedCheck.below(FINE, failure).code()).isEqualTo(code);
          FileResult gone = new FileResult(null, 1, 0, FileProblem.MISSING);
          assertThat(FailedCheck.below(gone, failure).code()).isEqualTo(MISSING);
        });
    assertThat(ProblemCode.values())
        .extracting(ProblemCode::label)
        .containsExactly(
            "plaintext",
            "missing",
            "truncated",
            "appended",
            "no-key",
            "no-length",
            "wrong-format",
            "tampered",
            "unauthenticated",
            "unreadable")
        .allSatisfy(label -> assertThat(ProblemCode.ofLabel(label).label()).isEqualTo(label));
  }

  /** What Avro reads is authenticated: its errors are of a writer, a library or the storage. */
  @Test
  void aCancelIsNoFinding() {
    Throwable failure = new UncheckedIOException(new ClosedByInterruptException());
    assertThatThrownBy(() -> FailedCheck.problem("", failure))
        .isInstanceOf(CancelledException.class);
    assertThatThrownBy(() -> FailedCheck.error("lake.db.t", "files", failure))
        .isInstanceOf(CancelledException.class);
  }

  @Test
  void avrosErrorsAccuseNobody() {
    for (RuntimeException failure :
        List.of(
            new AvroRuntimeException(new SocketException("Connection reset")),
            new AvroRuntimeException("Unrecognized codec: snappy"),
            new AvroRuntimeException(new IOException("Invalid sync!")),
            new AvroRuntimeException(new ZipException("invalid block type")))) {
      assertThat(FailedCheck.below(FINE, failure).code()).as("%s", failure).isEqualTo(UNREADABLE);
    }
  }

  @Test
  void keysStayOutOfSight() throws IOException {
    EncryptedFile file = EncryptedFile.stream(10, 16);
    assertThat(FileKey.of(new InMemoryInputFile(file.bytes()), file.keyMetadata()).toString())
        .isEqualTo("the key of a file");
  }

  private static FileResult check(
      Depth depth, InputFile stored, long expectedLength, ByteBuffer keyMetadata) {
    return new FileCheck(depth)
        .check(FileKind.DATA, "parquet", stored, expectedLength, keyMetadata);
  }

  /** A file in a storage that fails on demand. */
  private static final class Storage extends BytesFile {
    private final boolean ranges;
    private Throwable open;
    private Throwable read;
    private int readFrom = -1;
    private Throwable length;
    private boolean exists = true;

    Storage(byte[] bytes, boolean ranges) {
      super(bytes);
      this.ranges = ranges;
    }

    @Override
    public long getLength() {
      raise(length);
      return super.getLength();
    }

    @Override
    public SeekableInputStream newStream() {
      raise(open);
      return ranges ? new Ranges() : new FailingStream();
    }

    private static void raise(Throwable error) {
      if (error instanceof Error e) {
        throw e;
      } else if (error instanceof RuntimeException e) {
        throw e;
      } else if (error instanceof IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public boolean exists() {
      return exists;
    }

    private class FailingStream extends Stream {

      @Override
      public int read(byte[] target, int at, int count) throws IOException {
        if (position >= readFrom) {
          if (read instanceof IOException e) {
            throw e;
          }

          raise(read);
        }

        return super.read(target, at, count);
      }
    }

    private final class Ranges extends FailingStream implements RangeReadable {
      @Override
      public void readFully(long from, byte[] target, int at, int count) {
        throw new UnsupportedOperationException();
      }

      @Override
      public int readTail(byte[] target, int at, int count) {
        int got = Math.min(count, bytes.length);
        System.arraycopy(bytes, bytes.length - got, target, at, got);
        return got;
      }
    }
  }
}
