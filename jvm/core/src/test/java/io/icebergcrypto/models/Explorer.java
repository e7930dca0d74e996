package io.icebergcrypto.models;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.LakeFixture;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;

/**
 * Explores all states of a model, breadth first: all orders of all steps of all actors. The first
 * violation is therefore one with the fewest steps that lead to it.
 *
 * @param states how many different states there are, up to the violation
 * @param ends in how many of them nobody has a step left
 * @param violation what is wrong, and the steps that lead to it; null: nothing
 */
public record Explorer(int states, int ends, String violation) {
  private static final int MOST = 20_000_000;

  private record Way<V extends Enum<V>>(State<V> from, String step) {}

  /** Explores a model. */
  public static <V extends Enum<V>> Explorer explore(Model<V> model, Class<V> variables) {
    Map<State<V>, Way<V>> ways = new HashMap<>();
    Queue<State<V>> next = new ArrayDeque<>();
    State<V> initial = model.initial();
    ways.put(initial, new Way<>(null, null));
    next.add(initial);
    int ends = 0;
    while (!next.isEmpty()) {
      State<V> state = next.remove();
      int[] enabled = {0};
      String wrong = model.broken(state);
      if (wrong == null) {
        model.steps(
            state,
            (name, change) -> {
              enabled[0]++;
              State<V> then = state.copy();
              change.accept(then);
              if (ways.putIfAbsent(then, new Way<>(state, name)) == null) {
                next.add(then);
              }
            });
        ends += enabled[0] == 0 ? 1 : 0;
        wrong = enabled[0] == 0 ? model.brokenAtTheEnd(state) : null;
      }

      if (wrong != null) {
        String way = told(ways, state) + "   " + state.described(variables.getEnumConstants());
        return new Explorer(ways.size(), ends, wrong + ", after\n" + way);
      }

      assertThat(ways.size()).as("states: the model has no bounds").isLessThan(MOST);
    }

    return new Explorer(ways.size(), ends, null);
  }

  private static <V extends Enum<V>> String told(Map<State<V>, Way<V>> ways, State<V> state) {
    List<String> steps = new ArrayList<>();
    for (Way<V> way = ways.get(state); way.step() != null; way = ways.get(way.from())) {
      steps.add(way.step());
    }

    Collections.reverse(steps);
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < steps.size(); i++) {
      text.append(String.format("%2d. %s%n", i + 1, steps.get(i)));
    }

    return text.toString();
  }

  /** Proves that nothing goes wrong, and says how much was looked at. */
  public void requireSound(String model) {
    assertThat(violation).as(model).isNull();
    assertThat(ends).as("ends of " + model).isPositive();
    System.out.printf("%s: %,d states, %,d ends, no violation%n", model, states, ends);
  }

  /** Proves that a planted defect is found. */
  public void requireBroken(String model, String wrong) {
    if (LakeFixture.NIGHTLY) {
      System.out.printf("%s: %,d states, then: %s%n", model, states, violation);
    }

    assertThat(violation).as(model).contains(wrong);
  }
}
