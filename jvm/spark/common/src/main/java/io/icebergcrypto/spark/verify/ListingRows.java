package io.icebergcrypto.spark.verify;

import java.io.Closeable;
import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.function.Supplier;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.sql.Row;

/**
 * The rows of a manifest list or a manifest: the files that it lists and, at the end, what was
 * found about itself. That it cannot be read to its end is a finding too.
 */
final class ListingRows implements Iterator<Row>, Closeable {
  private final Row file;
  private final FileResult found;
  private final Iterator<Row> below;
  private final CloseableIterable<Row> opened;
  private Throwable failure;
  private boolean ended = false;

  /**
   * Opens it, unless it could not even be checked.
   *
   * @param below reads what it lists
   */
  ListingRows(Row file, FileResult found, Supplier<CloseableIterable<Row>> below) {
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
    } catch (RuntimeException e) {
      this.failure = e;
    }

    this.ended = true;
    try {
      close();
    } catch (IOException | RuntimeException e) {
      this.failure = failure == null ? e : failure;
    }

    return FileRow.checked(file, failure == null ? found : FailedCheck.below(found, failure));
  }

  @Override
  public void close() throws IOException {
    opened.close();
  }
}
