package io.icebergcrypto.spark.verify;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Fuzz;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;

/**
 * Hostile files: for any bytes, a check ends with an answer, and only the file as it was written is
 * fine. The key metadata is the table's, and gives the length of the hostile file.
 */
class DeepFuzzTest {
  @Test
  void parquet() throws IOException {
    mutate(EncryptedFile.parquet(900, 16, EncryptedFile.MANY_PARTS));
    mutate(EncryptedFile.parquet(3, 32, Map.of()));
  }

  @Test
  void streams() throws IOException {
    mutate(EncryptedFile.stream(300, 16));
  }

  /** What a writer with the key may have made: the walk trusts that no more than it has to. */
  @Test
  void authenticHeadersAndFooters() throws IOException {
    ForgedParquet forger = new ForgedParquet();
    Fuzz.run(
        5,
        round -> {
          FileResult checked = forger.forge(round).check(Depth.DEEP);
          return checked.words() == null;
        });
  }

  private static void mutate(EncryptedFile file) {
    Fuzz.run(
        5,
        round -> {
          byte[] bytes = round.mutated(file.bytes());
          FileResult checked = file.with(bytes).check(Depth.DEEP);
          boolean same = Arrays.equals(bytes, file.bytes());
          assertThat(checked.words() == null).as(checked.words()).isEqualTo(same);
          return same;
        });
  }
}
