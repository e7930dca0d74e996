package io.icebergcrypto.spark;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.io.checked.OpenParquetFile;
import java.security.GeneralSecurityException;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskFailureListener;

/**
 * Names the table and the file when Parquet fails to decrypt in a Spark task: Parquet's own error
 * ("GCM tag check failed") names neither. The error that does is added as suppressed, which Spark's
 * message shows.
 */
public final class FailedReads implements OpenParquetFile.Watcher {
  private static final String HINT =
      "Bytes of the file were changed, or it was exchanged for another file of this table, of"
          + " another one, or an older version. Restore it from a backup or an object version;"
          + " no row of it was returned that is not the table's.";

  /** For the service loader; fails without Spark. */
  public FailedReads() {
    TaskContext.get();
  }

  @Override
  public void watch(OpenParquetFile file) {
    TaskContext task = TaskContext.get();
    if (task != null) {
      TaskFailureListener listener = (context, error) -> explain(file, error);
      task.addTaskFailureListener(listener);
    }
  }

  private static void explain(OpenParquetFile file, Throwable error) {
    Throwable failure = parquetFailure(error);
    if (failure != null) {
      error.addSuppressed(
          new TamperedException(
                  String.format(
                      "%s is not what was written: Parquet cannot decrypt it (%s: %s)",
                      file.location(), failure.getClass().getSimpleName(), failure.getMessage()),
                  HINT)
              .inTable(file.table()));
    }
  }

  /** Parquet's failure to decrypt or to parse an encrypted file; null for any other failure. */
  private static Throwable parquetFailure(Throwable error) {
    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof IcebergCryptoException) {
        return null;
      }
    }

    for (Throwable cause = error; cause != null; cause = cause.getCause()) {
      if (cause instanceof GeneralSecurityException || inParquet(cause)) {
        return cause;
      }
    }

    return null;
  }

  /** Thrown by Parquet itself, or by the Thrift that it calls. */
  private static boolean inParquet(Throwable cause) {
    StackTraceElement[] stack = cause.getStackTrace();
    if (cause instanceof VirtualMachineError) {
      return stack.length > 0 && stack[0].getClassName().contains("org.apache.parquet.crypto.");
    }

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
