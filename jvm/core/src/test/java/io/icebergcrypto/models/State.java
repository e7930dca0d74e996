package io.icebergcrypto.models;

import java.util.Arrays;
import java.util.StringJoiner;

/**
 * A state of a model: a small number for each variable, 0 in the beginning.
 *
 * @param <V> the variables
 */
public final class State<V extends Enum<V>> {
  private final byte[] values;

  State(byte[] values) {
    this.values = values;
  }

  /** The state in which all variables are 0. */
  public static <V extends Enum<V>> State<V> initial(Class<V> variables) {
    return new State<>(new byte[variables.getEnumConstants().length]);
  }

  State<V> copy() {
    return new State<>(values.clone());
  }

  /** The value of a variable. */
  public int get(V variable) {
    return values[variable.ordinal()];
  }

  /** Whether a variable is not 0. */
  public boolean has(V variable) {
    return get(variable) != 0;
  }

  /** Whether a variable has the value that stands for a constant. */
  public boolean is(V variable, Enum<?> value) {
    return get(variable) == value.ordinal();
  }

  /** Sets a variable. */
  public State<V> set(V variable, int value) {
    if (value < Byte.MIN_VALUE || value > Byte.MAX_VALUE) {
      throw new IllegalArgumentException(variable + ": " + value);
    }

    values[variable.ordinal()] = (byte) value;
    return this;
  }

  /** Sets a variable to what stands for a constant. */
  public State<V> set(V variable, Enum<?> value) {
    return set(variable, value.ordinal());
  }

  /** Adds to a variable. */
  public State<V> add(V variable, int more) {
    return set(variable, get(variable) + more);
  }

  /** Its values, with the variables' names. */
  String described(V[] variables) {
    StringJoiner text = new StringJoiner(", ");
    for (V variable : variables) {
      if (has(variable)) {
        text.add(variable + "=" + get(variable));
      }
    }

    return text.toString();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof State<?> state && Arrays.equals(values, state.values);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(values);
  }
}
