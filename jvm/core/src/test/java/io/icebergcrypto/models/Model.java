package io.icebergcrypto.models;

import java.util.function.Consumer;

/**
 * A protocol as a state machine: who takes part, what each may do next, and what must hold.
 *
 * @param <V> the variables of its states
 */
public interface Model<V extends Enum<V>> {
  /** Takes the steps that are possible in a state. */
  interface Steps<V extends Enum<V>> {
    /** A step, in words, and what it changes. */
    void step(String name, Consumer<State<V>> change);
  }

  /** Where it begins. */
  State<V> initial();

  /** Reports all steps that an actor may take next. */
  void steps(State<V> state, Steps<V> steps);

  /** What is wrong with a state; null: nothing. */
  String broken(State<V> state);

  /** What is wrong with a state in which nobody has a step left; null: nothing. */
  default String brokenAtTheEnd(State<V> state) {
    return null;
  }
}
