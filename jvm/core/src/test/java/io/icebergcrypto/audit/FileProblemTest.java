package io.icebergcrypto.audit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.FileInspector;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.InputFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A hint is an instruction: followed to the letter, it must not cost data. */
class FileProblemTest {
  /** Something was lost or changed, and may be had again. */
  private static final Set<ProblemCode> LOST =
      EnumSet.of(
          ProblemCode.MISSING,
          ProblemCode.TRUNCATED,
          ProblemCode.APPENDED,
          ProblemCode.NO_KEY,
          ProblemCode.WRONG_FORMAT,
          ProblemCode.TAMPERED);

  private static final String WAIT = "Until then, expire and rewrite nothing";
  private static final Pattern GIVES_UP =
      Pattern.compile(
          "\\b(delete|expire|rewrite|drop|remove|purge|roll|write \\w+ rows)",
          Pattern.CASE_INSENSITIVE);

  @ParameterizedTest
  @EnumSource(FileKind.class)
  void nothingIsGivenUpForWhatCanBeRestored(FileKind kind) {
    for (ProblemCode code : LOST) {
      String hint = FileProblem.hint(code, kind);
      assertThat(hint).as("%s of %s", code, kind).containsIgnoringCase("restore");
      assertThat(hint.replace(WAIT, "")).doesNotContainPattern(GIVES_UP);
    }
  }

  @Test
  void norForAFileThatIsInspected() {
    InputFile file = new InMemoryInputFile("f", "AGS1".getBytes(StandardCharsets.UTF_8));
    assertThatThrownBy(() -> FileInspector.inspect(file))
        .isInstanceOfSatisfying(
            TamperedException.class,
            e -> {
              assertThat(e.hint()).contains("Restore", WAIT).doesNotContain("snapshots");
              assertThat(e.hint().replace(WAIT, "")).doesNotContainPattern(GIVES_UP);
            });
  }

  @ParameterizedTest
  @EnumSource(FileKind.class)
  void aFailedCheckAsksForNothingButAnother(FileKind kind) {
    String hint = FileProblem.hint(ProblemCode.UNREADABLE, kind);
    assertThat(hint).contains("verify again").doesNotContainPattern(GIVES_UP);
    assertThat(hint).doesNotContainIgnoringCase("restore");
  }

  /** It may be another table's file, a running write's, or of a copy that is not finished. */
  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "UNREADABLE")
  void aStrayMayBelongToAnother(ProblemCode code) {
    assertThat(FileProblem.hint(code, FileKind.STRAY))
        .startsWith("Find out whose it is: other tables may share this folder, a write or a copy");
  }

  @ParameterizedTest
  @EnumSource(
      value = FileKind.class,
      names = {"DATA", "POSITION_DELETES", "DELETION_VECTOR", "MANIFEST", "MANIFEST_LIST"})
  void plaintextIsWrittenAgainBeforeAnythingGoes(FileKind kind) {
    String hint = FileProblem.hint(ProblemCode.PLAINTEXT, kind);
    assertThat(hint.indexOf("restore")).isBetween(0, hint.indexOf("write them again"));
    assertThat(hint.indexOf("compare them")).isBetween(0, hint.indexOf("expires"));
  }

  @Test
  void thePageHasThemAll() throws IOException {
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    String page = Files.readString(root.resolve("docs/verification.md")).replaceAll("\\s+", " ");
    Set<String> hints = new TreeSet<>();
    for (ProblemCode code : ProblemCode.values()) {
      for (FileKind kind : FileKind.values()) {
        hints.add(FileProblem.hint(code, kind));
      }
    }

    assertThat(hints).allSatisfy(hint -> assertThat(page).contains(hint));
  }
}
