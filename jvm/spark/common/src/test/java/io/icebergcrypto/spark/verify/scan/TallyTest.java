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
}
