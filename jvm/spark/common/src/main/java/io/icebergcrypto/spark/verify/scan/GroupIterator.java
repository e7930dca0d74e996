package io.icebergcrypto.spark.verify.scan;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.BiPredicate;
import java.util.function.Function;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;

/**
 * Turns each group of neighbours into an iterator, and these into one. It holds one group at a
 * time, and ends when the task was cancelled.
 *
 * @param <T> what is grouped
 * @param <R> what becomes of it
 */
public final class GroupIterator<T, R> implements Iterator<R>, Closeable {
  private final Iterator<T> from;
  private final BiPredicate<T, T> together;
  private final Function<List<T>, Iterator<R>> map;
  private T first;
  private Iterator<R> current = Collections.emptyIterator();

  /**
   * Groups.
   *
   * @param together whether an element belongs to the group that began with another
   */
  public GroupIterator(
      Iterator<T> from, BiPredicate<T, T> together, Function<List<T>, Iterator<R>> map) {
    this.from = from;
    this.together = together;
    this.map = map;
  }

  /** Each element is a group of its own. */
  public static <T, R> GroupIterator<T, R> each(Iterator<T> from, Function<T, Iterator<R>> map) {
    return new GroupIterator<>(from, (a, b) -> false, group -> map.apply(group.get(0)));
  }

  @Override
  public boolean hasNext() {
    TaskContext task = TaskContext.get();
    if (task != null && task.isInterrupted()) {
      throw cancelled();
    }

    while (!current.hasNext()) {
      if (first == null && !from.hasNext()) {
        return false;
      }

      this.current = map.apply(nextGroup());
    }

    return true;
  }

  private RuntimeException cancelled() {
    RuntimeException cancelled = new TaskKilledException("the verification was cancelled");
    try {
      close();
    } catch (IOException | RuntimeException e) {
      cancelled.addSuppressed(e);
    }

    return cancelled;
  }

  private List<T> nextGroup() {
    List<T> group = new ArrayList<>();
    group.add(first == null ? from.next() : first);
    this.first = null;
    while (from.hasNext() && first == null) {
      T next = from.next();
      if (together.test(group.get(0), next)) {
        group.add(next);
      } else {
        this.first = next;
      }
    }

    return group;
  }

  @Override
  public R next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }

    return current.next();
  }

  /** Closes the group that it is in, for a caller that stops before the end. */
  @Override
  public void close() throws IOException {
    if (current instanceof Closeable closeable) {
      closeable.close();
    }
  }
}
