package io.icebergcrypto.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.io.checked.StoredInput;
import io.icebergcrypto.testing.NoKms;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Schema;
import org.apache.iceberg.avro.Avro;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.data.avro.DataWriter;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.encryption.NativeEncryptionOutputFile;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.FileAppender;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** AES GCM streams whose key metadata gives no length, as iceberg-rust writes them. */
class FilesWithoutLengthTest {
  private static final int BLOCK = 1 << 20;
  private static final int STORED_BLOCK = BLOCK + 28;
  private static final int CONTENT = 2 * BLOCK + 77;
  private static final int STORED = 8 + CONTENT + 3 * 28;
  private static final Schema SCHEMA =
      new Schema(Types.NestedField.required(1, "note", Types.StringType.get()));

  private final TableEncryptionManager manager =
      new TableEncryptionManager("lake.db.t", List.of(), "k1", 16, new NoKms());

  private record Written(byte[] bytes, ByteBuffer keyMetadata) {}

  /** The list that iceberg-rust wrote, with its own key metadata. */
  @Test
  void aManifestListOfIcebergRust() throws IOException {
    byte[] list =
        Files.readAllBytes(
            Path.of(
                System.getProperty("iceberg.crypto.root"),
                "tests",
                "vectors",
                "iceberg-rust-manifest-list.avro"));
    ByteBuffer keyMetadata =
        ByteBuffer.wrap(
            HexFormat.of()
                .parseHex(
                    "01205bb3b37709a50a8ea8b7165034f77a77"
                        + "0220f726dcbf98e79dcedf353a090410429400"));
    Written file = new Written(list, keyMetadata);
    assertThat(read(file, null, true)).hasSize(1532).startsWith('O', 'b', 'j', 1);
    assertThatThrownBy(() -> read(file, null, false))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "gives no length", "iceberg-rust");
    assertThat(read(file, 1532L, false)).hasSize(1532);
  }

  @ParameterizedTest
  @ValueSource(longs = {CONTENT, STORED})
  void whatListsItGivesItsLength(long listed) throws IOException {
    Written file = write(new byte[CONTENT]);
    assertThat(read(file, listed, false)).hasSize(CONTENT);
    for (int length : new int[] {8 + STORED_BLOCK, 8 + 2 * STORED_BLOCK, STORED - 1}) {
      assertTampered(cut(file, length), listed, ProblemCode.TRUNCATED);
    }

    assertTampered(cut(file, STORED + 1), listed, ProblemCode.APPENDED);
  }

  /** A length that is that of whole blocks, but of less than the content, if that was meant. */
  @ParameterizedTest
  @CsvSource({"1048612, 1048612", "1048612, 1048676"})
  void aLengthOfTwoMeaningsIsTheContents(int listed, int stored) throws IOException {
    Written file = write(new byte[listed]);
    boolean whole = file.bytes.length == stored;
    assertThat(file.bytes).hasSize(1048676);
    if (whole) {
      assertThat(read(file, (long) listed, false)).hasSize(listed);
    } else {
      assertThatThrownBy(() -> read(cut(file, stored), (long) listed, false))
          .isInstanceOf(NotSupportedException.class);
    }
  }

  @Test
  void everyBlockIsAuthenticated() throws IOException {
    Written file = write(new byte[CONTENT]);
    for (int at : new int[] {20, 8 + STORED_BLOCK + 20, STORED - 1}) {
      byte[] flipped = file.bytes.clone();
      flipped[at] ^= 1;
      assertThatThrownBy(() -> read(new Written(flipped, file.keyMetadata), null, true))
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("tag");
    }

    assertThatThrownBy(() -> read(cut(file, STORED - 1), null, true))
        .isInstanceOf(TamperedException.class);
  }

  /** What stays open: docs/tamper.md. */
  @Test
  void ofContentThatIsNotAvroACutBehindABlockIsNotNoticed() throws IOException {
    Written file = write(new byte[CONTENT]);
    assertThat(read(cut(file, 8 + STORED_BLOCK), null, true)).hasSize(BLOCK);
  }

  @Test
  void avroEndsWithItsMarker() throws IOException {
    Written file = writeAvro();
    assertThat(file.bytes.length).isGreaterThan(2 * STORED_BLOCK);
    assertThat(read(file, null, true)).isNotEmpty();
    for (int blocks : new int[] {1, 2}) {
      assertThatThrownBy(() -> read(cut(file, 8 + blocks * STORED_BLOCK), null, true))
          .isInstanceOfSatisfying(
              TamperedException.class, e -> assertThat(e.code()).isEqualTo(ProblemCode.TRUNCATED))
          .hasMessageContaining("at the end of a block");
    }
  }

  private void assertTampered(Written file, long listed, ProblemCode code) {
    for (boolean anyLength : new boolean[] {false, true}) {
      assertThatThrownBy(() -> read(file, listed, anyLength))
          .isInstanceOfSatisfying(
              TamperedException.class,
              e ->
                  assertThat(e.code())
                      .isIn(code, ProblemCode.TAMPERED)) // of two lengths that may be meant
          .hasMessageContaining("lake.db.t");
    }
  }

  private byte[] read(Written file, Long listed, boolean anyLength) throws IOException {
    ObjectStoreFile stored = new ObjectStoreFile(file.bytes, false);
    InputFile guarded =
        new GuardedInputFile(
            "lake.db.t",
            new StoredInput(stored, () -> file.bytes.length, listed, true, anyLength),
            Set.of());
    InputFile opened = manager.decrypt(EncryptedFiles.encryptedInput(guarded, file.keyMetadata));
    try (SeekableInputStream in = opened.newStream()) {
      return in.readAllBytes();
    }
  }

  private static Written cut(Written file, int length) {
    return new Written(Arrays.copyOf(file.bytes, length), file.keyMetadata);
  }

  private Written write(byte[] content) throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager.encrypt(target);
    try (PositionOutputStream out = encrypted.encryptingOutputFile().create()) {
      out.write(content);
    }

    return new Written(target.toByteArray(), encrypted.keyMetadata().buffer());
  }

  private Written writeAvro() throws IOException {
    InMemoryOutputFile target = new InMemoryOutputFile();
    NativeEncryptionOutputFile encrypted = manager.encrypt(target);
    try (FileAppender<Record> out =
        Avro.write(encrypted.encryptingOutputFile())
            .schema(SCHEMA)
            .set("write.avro.compression-codec", "uncompressed")
            .createWriterFunc(ignored -> DataWriter.create(ignored))
            .build()) {
      GenericRecord row = GenericRecord.create(SCHEMA);
      for (long i = 0; i < 2500; i++) {
        out.add(row.copy(Map.of("note", "n".repeat(1000))));
      }
    }

    return new Written(target.toByteArray(), encrypted.keyMetadata().buffer());
  }
}
