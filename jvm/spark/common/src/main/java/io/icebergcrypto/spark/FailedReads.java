package io.icebergcrypto.spark;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.io.checked.OpenParquetFile;
import io.icebergcrypto.io.checked.ParquetFooterCheck;
import io.icebergcrypto.kms.call.Causes;
import java.util.List;
import java.util.Optional;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskFailureListener;

/**
 * Names the table and the file when Parquet fails in a Spark task: its own error ("GCM tag check
 * failed") names neither. The error that does is added as suppressed, which Spark's message shows.
 * It accuses of a change only where Parquet's error proves one.
 */
public final class FailedReads implements OpenParquetFile.Watcher {
  private static final String PLAINTEXT = "Applying decryptor on plaintext file"; // Parquet's

  private static final String FAILED =
      "A Parquet library may be missing, memory may be short, the storage may have failed, or a"
          + " later version may have written the file: see the error above. verify_encryption with"
          + " deep => true shows whether the file is as it was written.";

  private static final String ONE_CHANGED =
      "Bytes of one of these files were changed, or it was replaced with another file. Parquet does"
          + " not say which one: run verify_encryption with deep => true, which does, before you"
          + " restore a file. No row was returned that is not the table's.";

  private static final int MOST_NAMES = 5;

  private static final String CHANGED =
      "Bytes of the file were changed, or it was replaced with another file of this table, of"
          + " another one, or an older version. Restore it from a backup or an object version; no"
          + " row of it was returned that is not the table's.";

  /** For the service loader; fails without Spark. */
  public FailedReads() {
    TaskContext.get();
  }

  @Override
  public boolean watch(OpenParquetFile file) {
    TaskContext task = TaskContext.get();
    if (task == null) {
      return false; // a thread of a pool, or no task
    }

    TaskFailureListener listener = (context, error) -> explain(file, error);
    task.addTaskFailureListener(listener);
    return true;
  }

  private static void explain(OpenParquetFile file, Throwable error) {
    explanation(file.locations(), error)
        .ifPresent(explanation -> error.addSuppressed(explanation.inTable(file.table())));
  }

  /**
   * What to say of Parquet's errors; nothing of those that say it themselves, or are others'.
   *
   * @param files those of which one was read
   */
  static Optional<IcebergCryptoException> explanation(List<String> files, Throwable error) {
    if (files.isEmpty() || Causes.typed(error).isPresent()) {
      return Optional.empty();
    }

    return Causes.of(error)
        .filter(cause -> Evidence.isWrongTag(cause) || inParquet(cause))
        .findFirst()
        .map(failure -> named(names(files), files.size() > 1, failure));
  }

  private static String names(List<String> files) {
    int last = files.size() - 1;
    if (last >= MOST_NAMES) {
      return String.format(
          "%s or %,d more",
          String.join(", ", files.subList(0, MOST_NAMES)), files.size() - MOST_NAMES);
    }

    return last == 0
        ? files.get(0)
        : String.join(", ", files.subList(0, last)) + " or " + files.get(last);
  }

  /**
   * The error.
   *
   * @param location one file or, if several, those of which it is one
   */
  private static IcebergCryptoException named(String location, boolean several, Throwable failure) {
    if (PLAINTEXT.equals(failure.getMessage())) {
      return ParquetFooterCheck.plaintext(location);
    }

    String words = failure.getClass().getSimpleName() + ": " + failure.getMessage();
    return Evidence.isOfParquet(failure)
        ? new TamperedException(
            String.format(
                "%s is not what was written: Parquet cannot decrypt it (%s)", location, words),
            several ? ONE_CHANGED : CHANGED)
        : new IcebergCryptoException(
            String.format("Parquet cannot read %s (%s)", location, words), FAILED);
  }

  /** Thrown by Parquet itself, or by the Thrift that it calls. */
  private static boolean inParquet(Throwable cause) {
    StackTraceElement[] stack = cause.getStackTrace();
    for (int i = 0; i < Math.min(stack.length, 8); i++) {
      String name = stack[i].getClassName();
      if (name.contains(".hadoop.fs.") || name.contains(".aws.")) {
        return false; // the storage's
      } else if (name.contains("org.apache.parquet.") || name.contains(".thrift.")) {
        return true;
      }
    }

    return false;
  }
}
