package io.icebergcrypto.spark.operations;

import static java.util.function.Function.identity;
import static java.util.stream.Collectors.toMap;

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
  private static final Map<String, Integer> FEW =
      Map.of("problems", 10, "snapshot_ids", 10, "snapshot_history", 0);

  private final Map<String, AtomicInteger> left =
      FEW.keySet().stream().collect(toMap(identity(), list -> new AtomicInteger(ALL)));

  /**
   * Leaves as much of the lists of a report as there is room for; what it counts stays. The history
   * is whole or empty, as readers count the snapshots that were not checked by it.
   */
  void cut(Map<String, Object> report) {
    left.forEach(
        (list, room) ->
            report.computeIfPresent(
                list, (name, all) -> first((List<?>) all, room, FEW.get(name))));
  }

  private static List<?> first(List<?> all, AtomicInteger room, int few) {
    boolean isRoom = room.getAndAdd(-all.size()) > 0;
    return isRoom || all.size() <= few ? all : List.copyOf(all.subList(0, few));
  }
}
