package io.icebergcrypto.spark.verify;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Supplier;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.util.TaskCompletionListener;

/**
 * The rows of a manifest list or a manifest: the files that it lists and, at the end, what was
 * found about itself. That it cannot be read to its end is a finding too.
 */
final class OpenedFile implements Iterator<Row> {
  private final Row file;
  private final CheckedFile found;
  private Iterator<Row> below;
  private CloseableIterable<Row> opened;
  private Throwable failure;
  private boolean ended = false;

  /**
   * Opens it, unless it could not even be checked.
   *
   * @param below reads what it lists
   */
  OpenedFile(Row file, CheckedFile found, Supplier<CloseableIterable<Row>> below) {
    this.file = file;
    this.found = found;
    CloseableIterable<Row> files = CloseableIterable.empty();
    Iterator<Row> rows = Collections.emptyIterator();
    try {
      files = found.unchecked() ? files : below.get();
      rows = files.iterator();
    } catch (RuntimeException e) {
      this.failure = e;
    }

    this.opened = files;
    this.below = rows;
    TaskContext task = TaskContext.get();
    if (task != null) { // which may end early: nobody asks for more rows, or it was cancelled
      task.addTaskCompletionListener((TaskCompletionListener) ignored -> closeQuietly());
    }
  }

  private void closeQuietly() {
    try {
      close();
    } catch (RuntimeException e) {
      // what was found is told
    }
  }

  private void close() {
    try {
      opened.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } finally {
      this.opened = CloseableIterable.empty(); // a task opens many, and the listener stays
      this.below = Collections.emptyIterator();
    }
  }

  @Override
  public boolean hasNext() {
    return !ended;
  }

  @Override
  public Row next() {
    if (ended) {
      throw new NoSuchElementException();
    }

    try {
      if (failure == null && below.hasNext()) {
        return below.next();
      }

      close();
    } catch (RuntimeException e) {
      this.failure = e;
    }

    this.ended = true;
    return FileRow.checked(file, failure == null ? found : FailedCheck.below(found, failure));
  }
}
