package io.icebergcrypto.spark.verify.scan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.EarlierReport.Recorded;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.testing.NoChmodFileSystem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Which recorded outcomes count, when the driver reads and writes them; Spark's, by night. */
class RecordedFilesTest {
  private static final StructType ROWS =
      new StructType()
          .add("path", DataTypes.StringType, false)
          .add("length", DataTypes.LongType, false)
          .add("entry", DataTypes.StringType)
          .add("problem", DataTypes.StringType)
          .add("code", DataTypes.StringType);

  @TempDir private Path tmp;

  private RecordedFiles open(Recorded signed) {
    Configuration hadoop = new Configuration();
    hadoop.set("fs.file.impl", NoChmodFileSystem.class.getName());
    RecordPlace place =
        new RecordPlace(folder().toUri().toString(), "t", "u1", "file:/wh/t", "deep");
    return RecordedFiles.open(null, 50, hadoop, place, ROWS, signed);
  }

  private Path folder() {
    return tmp.resolve("record");
  }

  private static FileSet files(Row... rows) {
    return FileSet.few(null, List.of(rows), ROWS);
  }

  private static Row right(String path, String entry) {
    return RowFactory.create(path, 7L, entry, null, null);
  }

  private static Row right(String path) {
    return right(path, "e");
  }

  private static Row wrong(String path, ProblemCode code) {
    return RowFactory.create(path, 7L, "e", "it is not right", code.label());
  }

  /** Records what was found, beside nothing that was taken over. */
  private static Map<String, Object> found(RecordedFiles recorded, Row... rows) {
    FileSet now = recorded.add(files(rows));
    return recorded.seal(FileSet.few(null, List.of(), recorded.right().schema()), now);
  }

  private static Recorded signed(Map<String, Object> record) {
    return new Recorded(
        (String) record.get("folder"), (String) record.get("index"), (String) record.get("sha256"));
  }

  /** The paths that count; of those to be checked again, with a question mark. */
  private static List<String> counting(RecordedFiles recorded) {
    int suspect = recorded.right().place("suspect");
    return recorded.right().few().stream()
        .map(row -> row.getString(0) + (row.getBoolean(suspect) ? "?" : ""))
        .sorted()
        .toList();
  }

  private Path only(String in) throws IOException {
    try (Stream<Path> files = Files.walk(folder().resolve(in))) {
      List<Path> some = files.filter(file -> file.toString().endsWith(".gz")).toList();
      assertThat(some).hasSize(1);
      return some.get(0);
    }
  }

  private static void replace(Path file, byte[] bytes) throws IOException {
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    Files.write(file, bytes);
  }

  private byte[] planted(String path) {
    StructType all = open(null).right().schema();
    Row row = RowFactory.create(path, 7L, "e", null, null, 1L, false, "0", null);
    return JsonLines.of(List.of(row), all);
  }

  @Test
  void aSignedReportVouchesForTheBytesOfItsRecordOnly() throws IOException {
    Map<String, Object> record = found(open(null), right("a"));
    Path part = only("records");
    byte[] whole = Files.readAllBytes(part);
    byte[] planted = planted("new");
    assertThat(counting(open(signed(record)))).containsExactly("a");
    for (String in : List.of("outcomes", "records")) {
      Path other = folder().resolve(in + "/other/part-0.json.gz");
      Files.createDirectories(other.getParent());
      Files.write(other, planted);
    }

    assertThat(counting(open(signed(record)))).as("planted beside it").containsExactly("a");
    assertThat(counting(open(null))).as("nobody signed").containsExactly("a", "new");

    replace(part, planted);
    notSigned(record, "was changed");
    Files.delete(part);
    notSigned(record, "is missing");
    Files.createDirectory(part);
    Files.write(part.resolve("part-0.json.gz"), planted);
    notSigned(record, "is missing"); // Spark's reader would take all files of such a folder
    assertThatThrownBy(() -> open(null)).hasMessageContaining("cannot be used to resume");
    Files.delete(part.resolve("part-0.json.gz"));
    Files.delete(part);
    replace(part, whole);
    assertThat(counting(open(signed(record)))).containsExactly("a");
    replace(folder().resolve((String) record.get("index")), "{}".getBytes());
    notSigned(record, "its index was changed");
  }

  private void notSigned(Map<String, Object> record, String why) {
    assertThatThrownBy(() -> open(signed(record)))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("is not what was signed")
        .hasMessageContaining(why);
  }

  @Test
  void anOutcomeCountsForAFileAsItWasListed() {
    FileSet right =
        open(signed(found(open(null), right("a"), right("b"), right("old", null)))).right();
    FileSet listed = files(right("a"), right("b", "other key"), right("c"), right("old", null));
    assertThat(right.alike(listed, "entry").few())
        .extracting(row -> row.getString(0))
        .containsExactly("a");
  }

  @Test
  void whatWasFoundWrongIsCheckedAgain() throws Exception {
    Map<String, Object> first = found(open(null), right("a"), right("b"), right("c"));
    Thread.sleep(2); // another millisecond
    Map<String, Object> second =
        found(
            open(signed(first)),
            right("a"),
            wrong("b", ProblemCode.TAMPERED),
            wrong("c", ProblemCode.UNREADABLE));
    assertThat(second).containsEntry("files", 1L);
    assertThat(counting(open(signed(first)))).containsExactly("a", "b?", "c?");
    assertThat(counting(open(null))).containsExactly("a", "b?", "c?");
    Thread.sleep(2);
    Map<String, Object> third = found(open(signed(first)), right("b"), right("c"));
    assertThat(counting(open(signed(third)))).as("it was read since").containsExactly("b?", "c");
    assertThat(counting(open(signed(first)))).containsExactly("a", "b?", "c?");
  }

  @Test
  void aRecordSaysWhatNobodySignedAndWhatCheckedItWhen() throws Exception {
    Map<String, Object> first = found(open(null), right("a"));
    RecordedFiles unsigned = open(null);
    FileSet taken = unsigned.right();
    assertThat(unsigned.unsigned(taken)).isZero();
    Thread.sleep(2);
    Map<String, Object> second = unsigned.seal(taken, unsigned.add(files(right("b"))));
    RecordedFiles next = open(signed(second));
    assertThat(next.rightAt(next.right(), Set.of("a", "b"))).containsOnlyKeys("b");
    assertThat(next.unsigned(next.right())).as("a, which nobody signed").isEqualTo(1);
    assertThat(second).containsEntry("oldest", first.get("oldest")).containsEntry("files", 2L);
    assertThat(second).containsEntry("versions", List.of("unknown")); // classes without a jar
    Map<String, Object> third = next.seal(next.right(), next.add(files()));
    RecordedFiles last = open(signed(third));
    assertThat(last.unsigned(last.right())).as("it stays so").isEqualTo(1);
    assertThat(open(signed(found(last))).right().few()).as("an empty record").isEmpty();
  }

  @Test
  void aHintSaysWhenAFileWasRight() {
    Tally tally = new Tally();
    tally.add(Problem.of(FileKind.DATA, "a", "changed", ProblemCode.TAMPERED));
    tally.add(Problem.of(FileKind.DATA, "b", "changed", ProblemCode.TAMPERED));
    String hint = tally.problems().get(1).hint();
    assertThat(tally.paths()).containsExactlyInAnyOrder("a", "b");
    tally.tellBefore(Map.of("a", Instant.EPOCH), at -> "Right at " + at + ". ");
    assertThat(tally.problems())
        .extracting(Problem::hint)
        .containsExactly("Right at 1970-01-01T00:00:00Z. " + hint, hint);
  }

  @Test
  void aRunThatWasStoppedLeavesNothingThatStopsTheNext() throws IOException {
    Map<String, Object> record = found(open(null), right("a"));
    Path part = only("records");
    Files.copy(part, part.resolveSibling("_part-0.json.gz"));
    replace(part.resolveSibling("_part-0.json.gz"), new byte[] {31, (byte) 139, 8});
    Path outcomes = folder().resolve("outcomes/stopped");
    Files.createDirectories(outcomes.resolve("_temporary"));
    Files.write(outcomes.resolve("part-1.json.gz"), new byte[0]); // a task that had no file
    Files.write(outcomes.resolve("part-2.json.gz"), planted("b"));
    assertThat(counting(open(null))).containsExactly("a", "b");
    assertThat(counting(open(signed(record)))).containsExactly("a");

    Path foreign = folder().resolve("problems/x/part-0.json.gz");
    Files.createDirectories(foreign.getParent());
    for (byte[] bytes :
        List.of(new byte[] {1, 2, 3}, JsonLines.of(files(right("a")).few(), ROWS))) {
      replace(foreign, bytes);
      assertThatThrownBy(() -> open(signed(record)))
          .isInstanceOf(IcebergCryptoException.class)
          .hasMessageContaining("problems/x/part-0.json.gz is not what a verification wrote");
    }
  }

  @Test
  void theDriverHoldsFewRowsOnly() {
    List<Row> rows = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      rows.add(right("s3://b/\u00e9 \"" + i + "\n"));
    }

    byte[] bytes = JsonLines.of(rows, ROWS);
    assertThat(JsonLines.count(bytes)).isEqualTo(10);
    assertThat(JsonLines.rows(bytes, ROWS)).toIterable().isEqualTo(rows);
    assertThat(JsonLines.fewOrNull(bytes, ROWS, 10)).isEqualTo(rows);
    assertThat(JsonLines.fewOrNull(bytes, ROWS, 9)).isNull();
    byte[] bomb = JsonLines.of(List.of(right("x".repeat(5 << 20))), ROWS);
    assertThat(JsonLines.fewOrNull(bomb, ROWS, 9)).as(bomb.length + " bytes of one row").isNull();
    byte[] other = JsonLines.of(List.of(RowFactory.create("a", true, "e", null, null)), ROWS);
    assertThatThrownBy(() -> JsonLines.fewOrNull(other, ROWS, 9)).hasMessageContaining("bigint");
  }
}
