package io.icebergcrypto.faults;

import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** Which calls something went wrong at, and how often. */
final class Reached {
  private final String what;
  private final Map<String, Map<Kind, Integer>> hits = new TreeMap<>();

  Reached(String what) {
    this.what = what;
  }

  void add(String way, Kind kind) {
    hits.computeIfAbsent(way, ignored -> new EnumMap<>(Kind.class)).merge(kind, 1, Integer::sum);
  }

  void add(Reached other) {
    other.hits.forEach(
        (way, kinds) ->
            kinds.forEach(
                (kind, count) ->
                    hits.computeIfAbsent(way, ignored -> new EnumMap<>(Kind.class))
                        .merge(kind, count, Integer::sum)));
  }

  /** How many calls were tried, by kind, and which kinds never came. */
  @Override
  public String toString() {
    Set<Kind> never = EnumSet.allOf(Kind.class);
    StringBuilder text = new StringBuilder(what).append(':');
    int all = 0;
    for (Map.Entry<String, Map<Kind, Integer>> way : hits.entrySet()) {
      never.removeAll(way.getValue().keySet());
      int tried = way.getValue().values().stream().mapToInt(Integer::intValue).sum();
      all += tried;
      text.append(String.format(" %s at %d %s,", way.getKey(), tried, way.getValue()));
    }

    return text.append(String.format(" %d in all; never at %s", all, never)).toString();
  }
}
