package io.icebergcrypto.spark.operations;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class ReportRoomTest {
  private static final List<String> THOUSAND = Collections.nCopies(1000, "x");

  private final ReportRoom room = new ReportRoom();

  private Map<String, Object> cut(String list, List<String> all) {
    Map<String, Object> report = new HashMap<>(Map.of(list, all, "problem_count", 1000L));
    room.cut(report);
    return report;
  }

  /** Ten thousand plaintext tables of a thousand problems each: they fit in the driver. */
  @Test
  void tenOfEachAreListedWhenThereIsNoMoreRoom() {
    for (int table = 0; table < 50; table++) {
      assertThat(cut("problems", THOUSAND)).containsEntry("problems", THOUSAND);
    }

    assertThat(cut("problems", THOUSAND))
        .containsEntry("problems", THOUSAND.subList(0, 10))
        .containsEntry("problem_count", 1000L);
    assertThat(cut("problems", List.of("one"))).containsEntry("problems", List.of("one"));
    assertThat(cut("snapshot_ids", THOUSAND)).containsEntry("snapshot_ids", THOUSAND);
  }

  /** Ten of a history would say that a table has ten snapshots. */
  @Test
  void aHistoryIsWholeOrEmpty() {
    for (int table = 0; table < 50; table++) {
      assertThat(cut("snapshot_history", THOUSAND)).containsEntry("snapshot_history", THOUSAND);
    }

    assertThat(cut("snapshot_history", List.of("one")))
        .containsEntry("snapshot_history", List.of());
  }
}
