package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.format.FileMagic;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.Test;

/** Manifest lists and manifests whose own bytes are right, and that fail while they are read. */
class ListingRowsTest {
  private static final Row LIST =
      FileRow.of(
          new ReachableFile(FileKind.MANIFEST_LIST, "s3://b/list", "avro", 9, "kek", false), 0);
  private static final FileResult FINE = new FileResult(FileMagic.AGS1, 9, 64, null);

  private static final Map<RuntimeException, ProblemCode> FAILURES =
      Map.of(
          // its own bytes were read, so it is there
          new NotFoundException("no such file"), ProblemCode.UNREADABLE,
          new TamperedException("block 1 of 2 does not open", ""), ProblemCode.TAMPERED,
          new UncheckedIOException(new IOException("reset")), ProblemCode.UNREADABLE,
          new KmsUnavailableException("key 'k1': no answer", ""), ProblemCode.UNREADABLE);

  @Test
  void whatWasListedBeforeAFailureIsCheckedAndTheFailureIsTold() {
    Row manifest = FileRow.below(LIST, FileKind.MANIFEST, "s3://b/m", "avro", 7, null, null);
    FAILURES.forEach(
        (failure, code) -> {
          Iterator<Row> failing = failing(List.of(manifest).iterator(), failure);
          AtomicBoolean closed = new AtomicBoolean();
          List<Row> rows =
              rows(FINE, () -> CloseableIterable.combine(() -> failing, () -> closed.set(true)));
          assertThat(rows).hasSize(2).startsWith(manifest);
          assertThat(closed).isTrue();
          assertThat(found(rows)).isEqualTo(code.label());
          assertThat(rows(FINE, () -> raise(failure))).hasSize(1);
          assertThat(found(rows(FINE, () -> raise(failure)))).isEqualTo(code.label());
        });
  }

  @Test
  void aListThatIsGoneStaysSo() {
    FileResult gone = new FileResult(null, -1, 0, FileProblem.MISSING);
    FAILURES
        .keySet()
        .forEach(e -> assertThat(found(rows(gone, () -> raise(e)))).isEqualTo("missing"));
  }

  @Test
  void whatCouldNotBeCheckedIsNotOpened() {
    FileProblem why = new FileProblem(ProblemCode.UNREADABLE, "no answer");
    List<Row> rows =
        rows(
            new FileResult(null, -1, 0, why),
            () -> {
              throw new AssertionError("opened");
            });
    assertThat(found(rows)).isEqualTo("unreadable");
  }

  private static List<Row> rows(FileResult found, Supplier<CloseableIterable<Row>> below) {
    List<Row> rows = new ArrayList<>();
    new ListingRows(found, below, outcome -> Optional.of(FileRow.checked(LIST, outcome)))
        .forEachRemaining(rows::add);
    return rows;
  }

  private static String found(List<Row> rows) {
    return rows.get(rows.size() - 1).getString(FileRow.CHECKED.fieldIndex("code"));
  }

  private static CloseableIterable<Row> raise(RuntimeException failure) {
    throw failure;
  }

  private static Iterator<Row> failing(Iterator<Row> first, RuntimeException then) {
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        return true;
      }

      @Override
      public Row next() {
        if (first.hasNext()) {
          return first.next();
        }

        throw then;
      }
    };
  }
}
