package io.icebergcrypto.spark.operations;

import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * How much the reports on the tables of one call list together: the driver holds them until the
 * call ends, and then one text of JSON. Ten thousand tables that are not encrypted have a thousand
 * problems each.
 */
final class ReportRoom {
  /** Problems of all tables, and snapshots. */
  private static final int ALL = 50_000;

  /** How many are listed of each table when there is no more room. */
  private static final int FEW = 10;

  private final Map<String, AtomicInteger> left =
      Map.of(
          "problems", new AtomicInteger(ALL),
          "snapshot_ids", new AtomicInteger(ALL),
          "snapshot_history", new AtomicInteger(ALL));

  /** Leaves as much of the lists of a report as there is room for; what it counts stays. */
  void cut(Map<String, Object> report) {
    left.forEach(
        (list, room) -> report.computeIfPresent(list, (name, all) -> first((List<?>) all, room)));
  }

  private static List<?> first(List<?> all, AtomicInteger room) {
    boolean isRoom = room.getAndAdd(-all.size()) > 0;
    return isRoom || all.size() <= FEW ? all : List.copyOf(all.subList(0, FEW));
  }
}
