package io.icebergcrypto.models;

import java.util.function.Consumer;

/**
 * One of those who take part in a model: what it may do next in a state. It has a number, from 1
 * on, and is at a place. A variable that each actor has is one of the model's for each: the first
 * actor's, and behind it the others'.
 *
 * @param <V> the variables of the model
 * @param <P> the places
 */
public abstract class Actor<V extends Enum<V>, P extends Enum<P>> {
  private static final ClassValue<Object[]> CONSTANTS =
      new ClassValue<>() {
        @Override
        protected Object[] computeValue(Class<?> type) {
          return type.getEnumConstants(); // which makes a new array each time
        }
      };

  /**
   * What the actors of a model have in common.
   *
   * @param pc where the first one is
   * @param done the first place at which one has ended; at all behind it, it has, too
   * @param faults how many faults there were
   * @param most how many there may be
   * @param planted the defect that they have
   */
  public record Common<V extends Enum<V>, P extends Enum<P>>(
      V pc, P done, V faults, int most, Enum<?> planted) {}

  protected final State<V> s;
  protected final int number;
  private final Model.Steps<V> steps;
  private final Common<V, P> common;

  protected Actor(State<V> s, Model.Steps<V> steps, int number, Common<V, P> common) {
    this.s = s;
    this.steps = steps;
    this.number = number;
    this.common = common;
  }

  /** The variable of an actor, by the first one's. */
  public static <V extends Enum<V>> V of(V first, int number) {
    return constant(first.getDeclaringClass(), first.ordinal() + number - 1);
  }

  private static <E extends Enum<E>> E constant(Class<E> type, int ordinal) {
    return type.cast(CONSTANTS.get(type)[ordinal]);
  }

  /** Its own variable, by the first actor's. */
  protected final V var(V first) {
    return of(first, number);
  }

  /** Where it is. */
  protected final P pc() {
    return constant(common.done().getDeclaringClass(), s.get(var(common.pc())));
  }

  /** Whether it has this defect. */
  protected final boolean plants(Enum<?> defect) {
    return common.planted() == defect;
  }

  /** What it is called. */
  protected String called() {
    return "call " + number;
  }

  /** It may change something, and is elsewhere then. */
  protected final void step(String name, P next, Consumer<State<V>> change) {
    steps.step(
        called() + ": " + name,
        n -> {
          change.accept(n);
          n.set(var(common.pc()), next);
        });
  }

  /** It may go on. */
  protected final void step(String name, P next) {
    step(name, next, n -> {});
  }

  /** Something may go wrong, while there were not as many faults as there may be. */
  protected final void fault(String name, P next, Consumer<State<V>> change) {
    if (s.get(common.faults()) < common.most()) {
      step(
          name,
          next,
          n -> {
            change.accept(n);
            n.add(common.faults(), 1);
            blame(n);
          });
    }
  }

  /** Something may go wrong that changes nothing. */
  protected final void fault(String name, P next) {
    fault(name, next, n -> {});
  }

  /** For a model that keeps whose faults they were. */
  protected void blame(State<V> n) {}

  /** It may be killed, if it has not ended. */
  protected final void mayBeKilled(P dead) {
    if (!hasEnded(number)) {
      fault("is killed", dead);
    }
  }

  /** It may begin: the second after the first has ended, as of one operator, others at any time. */
  protected final void mayBegin(P first) {
    if (number != 2 || hasEnded(1)) {
      step("begins", first);
    }
  }

  private boolean hasEnded(int which) {
    return s.get(of(common.pc(), which)) >= common.done().ordinal();
  }
}
