package io.icebergcrypto.io;

import static io.icebergcrypto.format.TestFiles.plaintext;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.testing.NoKms;
import java.io.EOFException;
import java.io.IOException;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.InvalidKeyException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Schema;
import org.apache.iceberg.avro.Avro;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.avro.DataWriter;
import org.apache.iceberg.data.avro.PlannedDataReader;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.NativeEncryptionInputFile;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.encryption.StandardEncryptionManager;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.hadoop.HadoopInputFile;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.RangeReadable;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.ByteBuffers;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Files whose length in the storage is not the authenticated one, and others that do not decrypt.
 */
class TamperedFilesTest {
  private static final int BLOCK = 1 << 20;
  private static final int STORED_BLOCK = BLOCK + 28;
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.required(2, "note", Types.StringType.get()));

  private final TableEncryptionManager manager =
      new TableEncryptionManager("lake.db.t", List.of(), "k1", 16, new NoKms());
  private final StandardEncryptionManager stock =
      new StandardEncryptionManager(List.of(), "k1", 16, new NoKms());

  private record Written(byte[] bytes, ByteBuffer keyMetadata) {}

  @Test
  void aWholeFileIsReadWithOneRequest() throws IOException {
    byte[] plain = plaintext(2 * BLOCK + 77);
    Written file = write(plain);
    ObjectStoreFile stored = new ObjectStoreFile(file.bytes, false);
    NativeEncryptionInputFile input = open(manager, stored, file.keyMetadata);
    assertThat(input.getLength()).isEqualTo(plain.length);
    try (SeekableInputStream in = input.newStream()) {
      assertThat(in.readAllBytes()).isEqualTo(plain);
      in.seek(5); // back from the end, where one more byte was asked for
      assertThat(in.read()).isEqualTo(plain[5] & 0xff);
      in.seek(plain.length - 1);
      assertThat(in.read()).isEqualTo(plain[plain.length - 1] & 0xff);
      assertThat(in.read()).isEqualTo(-1);
    }

    assertThat(stored.opened()).isOne();
  }

  @ParameterizedTest
  @ValueSource(
      ints = {0, 4, 8, 9, 500, 8 + STORED_BLOCK, 8 + STORED_BLOCK + 1, 8 + 2 * STORED_BLOCK})
  void aFileCutOffIsNoEndOfData(int length) throws IOException {
    Written file = write(plaintext(2 * BLOCK + 77));
    byte[] cut = Arrays.copyOf(file.bytes, length);
    assertTampered(
        ProblemCode.TRUNCATED, cut, file.keyMetadata, "cut off", "expected " + file.bytes.length);
  }

  @Test
  void aReadBehindTheEndIsNoStorageError() throws IOException {
    Written file = write(plaintext(2 * BLOCK + 77));
    byte[] cut = Arrays.copyOf(file.bytes, 100);
    InputFile input = open(manager, new ObjectStoreFile(cut, false), file.keyMetadata);
    try (SeekableInputStream in = input.newStream()) {
      in.seek(2 * BLOCK);
      assertThatThrownBy(in::read)
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("cut off");
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "The requested range is not satisfiable (Service: S3, Status Code: 416, Request ID: 9)",
        "null (Service: S3, Status Code: 416, Request ID: 9)",
        "oops (Service: Amazon S3; Status Code: 416; Error Code: InvalidRange; Request ID: 9)",
        "416 Requested range not satisfiable\nGET https://storage.googleapis.com/bucket/file",
        "Status code 416, \"{\"error\":{\"code\":\"InvalidRange\",\"message\":\"The range is\"}}\"",
        "Status code 416, (empty body)",
        "HTTP/1.1 416"
      })
  void whatClientsSayOfAReadBehindTheEndIsKnown(String message) throws IOException {
    for (RuntimeException failure :
        List.of(
            new IllegalStateException(message),
            new RuntimeException("read failed", new IOException(message)))) {
      eachWayOfReading(
          500,
          failure,
          read ->
              assertThatThrownBy(read::run)
                  .isInstanceOfSatisfying(
                      TamperedException.class,
                      e -> assertThat(e.code()).isEqualTo(ProblemCode.TRUNCATED)));
    }
  }

  /** Its client says that a read was behind the end, or ends it, and the file is whole. */
  @Test
  void anEndThatTheStorageDoesNotConfirmIsAFailureOfTheStorage() throws IOException {
    for (RuntimeException failure :
        List.of(
            new IllegalStateException("Status Code: 416"),
            new RuntimeException(new IOException("HTTP/1.1 416")))) {
      eachWayOfReading(1036, failure, this::assertFailed);
    }

    Written file = write(plaintext(1000));
    for (boolean ranges : new boolean[] {false, true}) {
      ObjectStoreFile stored = new ObjectStoreFile(Arrays.copyOf(file.bytes, 500), ranges);
      stored.sayThatItIsWhole();
      try (SeekableInputStream in = open(manager, stored, file.keyMetadata).newStream()) {
        assertFailed(in::readAllBytes);
      }
    }
  }

  private void assertFailed(Read read) {
    assertThatThrownBy(read::run)
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("Table lake.db.t: s3://bucket/db/t/file", "Read it again");
  }

  @Test
  void whatALaterVersionWroteIsNotTampered() throws IOException {
    Written file = write(plaintext(1000));
    byte[] later = file.bytes.clone();
    later[3] = '2';
    byte[] otherBlocks = file.bytes.clone();
    otherBlocks[6] = 8;
    ByteBuffer laterKey = ByteBuffer.wrap(ByteBuffers.toByteArray(file.keyMetadata).clone());
    laterKey.put(0, (byte) 2);
    for (Written each :
        List.of(
            new Written(later, file.keyMetadata),
            new Written(otherBlocks, file.keyMetadata),
            new Written(file.bytes, laterKey))) {
      ObjectStoreFile stored = new ObjectStoreFile(each.bytes, false);
      assertThatThrownBy(() -> open(manager, stored, each.keyMetadata).newStream().readAllBytes())
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll(
              "lake.db.t", "s3://bucket/db/t/file", "Nothing indicates that the file was changed");
    }
  }

  /** What a file is called, or a request's id, may have any number in it. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "s3://bucket/db/t/id_bucket=416/f.avro: Slow Down (Service: S3, Status Code: 503)",
        "s3://bucket/db/t/status=416/f.avro: Slow Down (Service: S3, Status Code: 503)",
        "s3://bucket/db/t/http_status_code=416/f.avro: (Service: S3, Status Code: 503)",
        "Access Denied (Service: S3, Status Code: 403, Request ID: 416)",
        "timeout after 416 ms"
      })
  void anotherFailureIsNoEnd(String message) throws IOException {
    IllegalStateException failure = new IllegalStateException(message);
    eachWayOfReading(500, failure, read -> assertThatThrownBy(read::run).isSameAs(failure));
  }

  @Test
  void aFileThatIsGoneIsNotCutOff() throws IOException {
    for (String cause : List.of("Status Code: 404, Request ID: 416", "Status Code: 416")) {
      NotFoundException gone =
          new NotFoundException(
              new IllegalStateException(cause),
              "Location does not exist: s3://bucket/db/t/id_bucket=416/f.avro");
      eachWayOfReading(500, gone, read -> assertThatThrownBy(read::run).isSameAs(gone));
    }
  }

  @Test
  void whatTheStorageThrowsIsItsOwn() throws IOException {
    for (RuntimeException failure :
        List.of(
            new IllegalStateException("Connection pool shut down"),
            new IllegalStateException("Cannot read: already closed"),
            new IllegalArgumentException(new UnknownHostException("nameservice1")),
            new RuntimeException(new InvalidKeyException("the storage account's")))) {
      eachWayOfReading(500, failure, read -> assertThatThrownBy(read::run).isSameAs(failure));
    }
  }

  @FunctionalInterface
  private interface Read {
    void run() throws IOException;
  }

  /**
   * Reads a file of a length whose storage fails: decrypted and as Parquet does, as a stream and by
   * range.
   */
  private void eachWayOfReading(int length, RuntimeException failure, Consumer<Read> check)
      throws IOException {
    Written file = write(plaintext(1000));
    for (boolean ranges : new boolean[] {false, true}) {
      ObjectStoreFile stored = new ObjectStoreFile(Arrays.copyOf(file.bytes, length), ranges);
      stored.failWith(failure);
      NativeEncryptionInputFile input = open(manager, stored, file.keyMetadata);
      for (InputFile each : List.of(input, input.encryptedInputFile())) {
        try (SeekableInputStream in = each.newStream()) {
          if (ranges) {
            check.accept(() -> ((RangeReadable) in).readFully(10, new byte[20], 0, 20));
          } else {
            check.accept(in::read);
            check.accept(in::readAllBytes);
          }
        }
      }
    }
  }

  @Test
  void nothingIsSoughtBehindTheEndOfALocalFile(@TempDir Path folder) throws IOException {
    Written file = write(plaintext(2 * BLOCK + 77));
    Path cut = Files.write(folder.resolve("cut"), Arrays.copyOf(file.bytes, 100));
    InputFile stored = HadoopInputFile.fromLocation(cut.toString(), new Configuration());
    try (SeekableInputStream in = stored.newStream()) {
      assertThatThrownBy(() -> in.seek(BLOCK)).isInstanceOf(EOFException.class);
    }

    try (SeekableInputStream in = open(manager, stored, file.keyMetadata).newStream()) {
      in.seek(2 * BLOCK);
      assertThatThrownBy(in::read)
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("cut off");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 8, 100, 8 + STORED_BLOCK})
  void anEndThatTheStorageThrowsIsNoEndOfData(int length) throws IOException {
    Written file = write(plaintext(2 * BLOCK + 77));
    InputFile stored = new ThrowingFile(Arrays.copyOf(file.bytes, length));
    NativeEncryptionInputFile input = open(manager, stored, file.keyMetadata);
    for (InputFile each : List.of(input, input.encryptedInputFile())) { // the latter is Parquet's
      try (SeekableInputStream in = each.newStream()) {
        assertThatThrownBy(in::readAllBytes)
            .isInstanceOf(TamperedException.class)
            .hasMessageContaining("cut off");
      }
    }

    try (SeekableInputStream in = input.encryptedInputFile().newStream()) {
      assertThatThrownBy(() -> in.seek(file.bytes.length))
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("cut off");
    }
  }

  /** Its streams throw EOFException at the end, and behind it. */
  private static final class ThrowingFile extends InMemoryInputFile {
    private ThrowingFile(byte[] bytes) {
      super("s3://bucket/db/t/file", bytes);
    }

    @Override
    public SeekableInputStream newStream() {
      SeekableInputStream stored = super.newStream();
      return new SeekableInputStream() {
        @Override
        public int read() throws IOException {
          return checked(stored.read());
        }

        @Override
        public int read(byte[] bytes, int offset, int count) throws IOException {
          return checked(stored.read(bytes, offset, count));
        }

        private static int checked(int got) throws IOException {
          if (got < 0) {
            throw new EOFException("Attempted to read past the end");
          }

          return got;
        }

        @Override
        public void seek(long newPosition) throws IOException {
          stored.seek(checked(newPosition > getLength() ? -1 : (int) newPosition));
        }

        @Override
        public long getPos() throws IOException {
          return stored.getPos();
        }
      };
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 1})
  void parquetOpensALocalFileOfItsLengthOnly(int more, @TempDir Path folder) throws IOException {
    Written file = write(plaintext(1000));
    Path changed = folder.resolve("file");
    Files.write(changed, Arrays.copyOf(file.bytes, file.bytes.length + more));
    InputFile stored = HadoopInputFile.fromLocation(changed.toString(), new Configuration());
    NativeEncryptionInputFile input = open(manager, stored, file.keyMetadata);
    assertThatThrownBy(() -> input.encryptedInputFile().newStream().close())
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining(more < 0 ? "cut off" : "appended");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 29, STORED_BLOCK})
  void appendedBytesAreNoticedAtTheEnd(int count) throws IOException {
    Written file = write(plaintext(BLOCK + 1));
    byte[] longer = Arrays.copyOf(file.bytes, file.bytes.length + count);
    assertTampered(ProblemCode.APPENDED, longer, file.keyMetadata, "appended");
  }

  @Test
  void aFlippedBitIsNoticed() throws IOException {
    Written file = write(plaintext(1000));
    for (int i = 8; i < file.bytes.length; i += 7) {
      byte[] flipped = file.bytes.clone();
      flipped[i] ^= 1;
      assertTampered(flipped, file.keyMetadata, "authentication tag");
    }
  }

  @Test
  void plaintextIsNoEncryptedFile() throws IOException {
    Written file = write(plaintext(1000));
    for (int length : new int[] {file.bytes.length, 500, 5000}) {
      assertTampered(plaintext(length), file.keyMetadata, "Invalid GCM stream", "AGS1");
    }
  }

  @Test
  void afterAFailureNothingIsRead() throws IOException {
    Written file = write(plaintext(2 * BLOCK));
    byte[] flipped = file.bytes.clone();
    flipped[STORED_BLOCK + 100] ^= 1;
    InputFile input = open(manager, new ObjectStoreFile(flipped, false), file.keyMetadata);
    try (SeekableInputStream in = input.newStream()) {
      assertThat(in.readNBytes(BLOCK)).hasSize(BLOCK);
      assertThatThrownBy(in::read).isInstanceOf(TamperedException.class);
      assertThatThrownBy(() -> in.seek(0)).isInstanceOf(TamperedException.class);
      assertThatThrownBy(() -> in.read(new byte[10])).isInstanceOf(TamperedException.class);
    }
  }

  @Test
  void stockIcebergTakesACutFileForAWholeOne() throws IOException {
    Written file = writeAvro(3000);
    byte[] cut = Arrays.copyOf(file.bytes, file.bytes.length - 1000);
    InputFile inStock = open(stock, new ObjectStoreFile(cut, false), file.keyMetadata);
    assertThat(readAvro(inStock)).isBetween(1, 2999);
    InputFile inOurs = open(manager, new ObjectStoreFile(cut, false), file.keyMetadata);
    assertThatThrownBy(() -> readAvro(inOurs))
        .isInstanceOf(TamperedException.class)
        .hasMessageContaining("Table lake.db.t: s3://bucket/db/t/file");
    InputFile whole = open(manager, new ObjectStoreFile(file.bytes, false), file.keyMetadata);
    assertThat(readAvro(whole)).isEqualTo(3000);
  }

  @Test
  void aSplitMayStartBehindThePlaintext() throws IOException {
    byte[] plain = plaintext(1000);
    Written file = write(plain);
    InputFile inStock = open(stock, new ObjectStoreFile(file.bytes, false), file.keyMetadata);
    try (SeekableInputStream in = inStock.newStream()) {
      assertThatThrownBy(() -> in.seek(1020)).isInstanceOf(EOFException.class);
    }

    InputFile inOurs = open(manager, new ObjectStoreFile(file.bytes, false), file.keyMetadata);
    try (SeekableInputStream in = inOurs.newStream()) {
      in.seek(1020);
      assertThat(in.read()).isEqualTo(-1);
      assertThatThrownBy(() -> in.seek(file.bytes.length + 1)).isInstanceOf(EOFException.class);
    }
  }

  @Test
  void keyMetadataWithoutALengthIsRefused() throws IOException {
    NativeEncryptionOutputFile target = manager.encrypt(new InMemoryOutputFile());
    ByteBuffer noLength = target.keyMetadata().buffer();
    InputFile input = open(manager, new ObjectStoreFile(new byte[100], false), noLength);
    assertThatThrownBy(input::newStream)
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "no length");
  }

  @Test
  void keyMetadataThatIsNoneIsNamed() {
    ByteBuffer garbage = ByteBuffer.wrap(new byte[] {1, 2, 3});
    InputFile input = open(manager, new ObjectStoreFile(new byte[100], false), garbage);
    assertThatThrownBy(input::newStream)
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("s3://bucket/db/t/file", "key metadata");
  }

  @Test
  void parquetReadsRangesOfTheStoredFile() throws IOException {
    Written file = write(plaintext(1000));
    InputFile stored =
        open(manager, new ObjectStoreFile(file.bytes, true), file.keyMetadata).encryptedInputFile();
    assertThat(stored.getLength()).isEqualTo(file.bytes.length);
    byte[] tail = new byte[8];
    try (SeekableInputStream in = stored.newStream()) {
      assertThat(((RangeReadable) in).readTail(tail)).isEqualTo(8);
      in.seek(file.bytes.length - 8);
      assertThat(in.readNBytes(8)).isEqualTo(tail);
      assertThat(tail).isEqualTo(Arrays.copyOfRange(file.bytes, 1028, 1036));
    }

    for (int length : new int[] {0, 500, file.bytes.length - 1}) {
      byte[] cut = Arrays.copyOf(file.bytes, length);
      try (SeekableInputStream in =
          open(manager, new ObjectStoreFile(cut, true), file.keyMetadata)
              .encryptedInputFile()
              .newStream()) {
        assertThatThrownBy(() -> ((RangeReadable) in).readTail(tail))
            .isInstanceOf(TamperedException.class)
            .hasMessageContaining("lake.db.t");
        assertThatThrownBy(
                () -> {
                  in.seek(file.bytes.length - 8);
                  in.readNBytes(8);
                })
            .isInstanceOf(TamperedException.class);
      }
    }
  }

  @Test
  void anExecutorsManagerNamesTheTable() throws Exception {
    Written file = write(plaintext(1000));
    byte[] bytes = SerializationUtil.serializeToBytes(manager);
    TableEncryptionManager copy = SerializationUtil.deserializeFromBytes(bytes);
    ObjectStoreFile cut = new ObjectStoreFile(Arrays.copyOf(file.bytes, 500), false);
    try (SeekableInputStream in = open(copy, cut, file.keyMetadata).newStream()) {
      assertThatThrownBy(in::readAllBytes)
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("Table lake.db.t: s3://bucket/db/t/file");
    }
  }

  private void assertTampered(byte[] bytes, ByteBuffer keyMetadata, String... words)
      throws IOException {
    assertTampered(ProblemCode.TAMPERED, bytes, keyMetadata, words);
  }

  private void assertTampered(
      ProblemCode code, byte[] bytes, ByteBuffer keyMetadata, String... words) throws IOException {
    ObjectStoreFile stored = new ObjectStoreFile(bytes, false);
    try (SeekableInputStream in = open(manager, stored, keyMetadata).newStream()) {
      assertThatThrownBy(in::readAllBytes)
          .isInstanceOfSatisfying(
              TamperedException.class, e -> assertThat(e.code()).isEqualTo(code))
          .hasMessageContainingAll("Table lake.db.t: s3://bucket/db/t/file", "hint:")
          .hasMessageContainingAll(words);
    }
  }

  private static NativeEncryptionInputFile open(
      StandardEncryptionManager manager, InputFile stored, ByteBuffer keyMetadata) {
    return manager.decrypt(EncryptedFiles.encryptedInput(stored, keyMetadata));
  }

  private Written write(byte[] plain) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager.encrypt(target);
    try (PositionOutputStream out = encrypted.encryptingOutputFile().create()) {
      out.write(plain);
    }

    return written(target, encrypted);
  }

  private Written writeAvro(int rows) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager.encrypt(target);
    try (FileAppender<Record> out =
        Avro.write(encrypted.encryptingOutputFile())
            .schema(SCHEMA)
            .set("write.avro.compression-codec", "uncompressed")
            .createWriterFunc(ignored -> DataWriter.create(ignored))
            .build()) {
      GenericRecord row = GenericRecord.create(SCHEMA);
      for (long i = 0; i < rows; i++) {
        out.add(row.copy(Map.of("id", i, "note", "n".repeat(1000))));
      }
    }

    return written(target, encrypted);
  }

  private static Written written(InMemoryOutputFile target, NativeEncryptionOutputFile encrypted) {
    byte[] bytes = target.toByteArray();
    return new Written(bytes, encrypted.keyMetadata().copyWithLength(bytes.length).buffer());
  }

  private static int readAvro(InputFile input) throws IOException {
    List<Object> ids = new ArrayList<>();
    try (CloseableIterable<Record> rows =
        Avro.read(input).project(SCHEMA).createResolvingReader(PlannedDataReader::create).build()) {
      rows.forEach(row -> ids.add(row.get(0)));
    }

    return ids.size();
  }
}
