package io.icebergcrypto.spark.verify;

import java.io.Closeable;
import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.sql.Row;

/**
 * The rows of a manifest list or a manifest: the files that it lists and, at the end, what was
 * found about itself. That it cannot be read to its end is a finding too.
 */
final class ListingRows implements Iterator<Row>, Closeable {
  private final FileResult found;
  private final Function<FileResult, Optional<Row>> outcome;
  private final Iterator<Row> below;
  private final CloseableIterable<Row> opened;
  private Throwable failure;
  private Row ahead;
  private boolean ended = false;

  /**
   * Opens it, unless it could not even be checked.
   *
   * @param below reads what it lists
   * @param outcome the row at the end, if there is to be one
   */
  ListingRows(
      FileResult found,
      Supplier<CloseableIterable<Row>> below,
      Function<FileResult, Optional<Row>> outcome) {
    this.found = found;
    this.outcome = outcome;
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
  }

  @Override
  public boolean hasNext() {
    if (ahead == null && !ended) {
      this.ahead = nextOrNull();
    }

    return ahead != null;
  }

  private Row nextOrNull() {
    try {
      if (failure == null && below.hasNext()) {
        return below.next();
      }
    } catch (RuntimeException e) {
      this.failure = e;
    }

    this.ended = true;
    try {
      close();
    } catch (IOException | RuntimeException e) {
      this.failure = failure == null ? e : failure;
    }

    FileResult last = failure == null ? found : FailedCheck.below(found, failure);
    return outcome.apply(last).orElse(null);
  }

  @Override
  public Row next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }

    Row next = ahead;
    this.ahead = null;
    return next;
  }

  @Override
  public void close() throws IOException {
    opened.close();
  }
}
