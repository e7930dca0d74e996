package io.icebergcrypto.spark.verify.scan;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileKind;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class TallyTest {
  /** A plaintext table of many files: that the table is plaintext explains them, and comes last. */
  @Test
  void aProblemOfTheTableIsListedHoweverManyThereAre() {
    Tally tally = new Tally();
    IntStream.range(0, 1500)
        .mapToObj(i -> Problem.of(FileKind.DATA, "f" + i, "plaintext", ProblemCode.PLAINTEXT))
        .forEach(tally::add);
    Problem ofTable = Problem.notEncrypted("lake.db.t", "lake.db.t", "encryption.key-id");
    tally.add(ofTable);
    assertThat(tally.problems()).hasSize(1000).startsWith(ofTable);
    assertThat(tally.problemCount()).isEqualTo(1501);
  }

  /** Manifest lists that cannot be read, say, come before the data files of another set. */
  @Test
  void whatCouldNotBeCheckedPushesNoFindingOut() {
    Tally tally = new Tally();
    tally.merge(tallyOf("m", 1000, ProblemCode.UNREADABLE));
    tally.merge(tallyOf("x", 3, ProblemCode.PLAINTEXT));
    tally.add(Problem.of(FileKind.DATA, "y", "tampered", ProblemCode.TAMPERED));
    assertThat(tally.problems()).hasSize(1000);
    assertThat(tally.problems().subList(0, 5))
        .extracting(Problem::path)
        .containsExactly("x0", "x1", "x2", "y", "m0");
    assertThat(tally.problemCount()).isEqualTo(1004);
    assertThat(tally.uncheckedCount()).isEqualTo(1000);
  }

  private static Tally tallyOf(String name, int count, ProblemCode code) {
    Tally tally = new Tally();
    IntStream.range(0, count)
        .mapToObj(i -> Problem.of(FileKind.DATA, name + i, "it is so", code))
        .forEach(tally::add);
    return tally;
  }
}
