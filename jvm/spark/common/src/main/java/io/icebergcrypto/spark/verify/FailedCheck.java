package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileProblem;
import java.io.IOException;
import java.util.zip.ZipException;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.spark.TaskKilledException;

/**
 * Tells two kinds of failure apart: the check met bytes that are not what was written, which is a
 * finding about the table; or the check itself failed (KMS, network, storage, Spark), which says
 * nothing about the table.
 */
final class FailedCheck {
  private FailedCheck() {}

  /**
   * What a failure says about the bytes of a table.
   *
   * @return the cause that says it, or null when the check itself failed
   */
  static Throwable finding(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof IcebergCryptoException known) {
        boolean ofBytes =
            known instanceof TamperedException
                || known instanceof PlaintextException
                || known.getCause() instanceof ChecksumException;
        return ofBytes ? known : null;
      }

      if (cause instanceof NotFoundException // not Java's, which may be about a file of Spark's
          || cause instanceof ChecksumException
          || isOfAvro(cause)) {
        return cause;
      }
    }

    return null;
  }

  /** Avro throws its own errors also for what the storage throws while it reads. */
  private static boolean isOfAvro(Throwable error) {
    return isAvros(error.getClass().getName())
        && !(error.getCause() instanceof IOException cause && isOfStorage(cause));
  }

  private static boolean isOfStorage(IOException cause) {
    StackTraceElement[] stack = cause.getStackTrace();
    boolean thrownByAvro = stack.length > 0 && isAvros(stack[0].getClassName());
    return !thrownByAvro && !(cause instanceof ZipException); // a block that does not inflate
  }

  private static boolean isAvros(String className) {
    return className.contains("org.apache.avro."); // relocated in Iceberg's jar
  }

  /** What a failure to read a file, or its key, says about the file. */
  static CheckedFile of(long length, RuntimeException failure) {
    return new CheckedFile(null, length, 0, problem("", failure));
  }

  /**
   * What a failure comes to.
   *
   * @param what what failed, before the reason
   */
  static FileProblem problem(String what, Throwable failure) {
    Throwable finding = finding(failure);
    return new FileProblem(code(finding), what + reason(finding == null ? failure : finding));
  }

  /**
   * The code of a finding.
   *
   * @param finding one of {@link #finding}; null: the check failed
   */
  static ProblemCode code(Throwable finding) {
    if (finding == null) {
      return ProblemCode.UNREADABLE;
    } else if (finding instanceof NotFoundException) {
      return ProblemCode.MISSING;
    } else if (finding instanceof PlaintextException) {
      return ProblemCode.PLAINTEXT;
    }

    return finding instanceof TamperedException known ? known.code() : ProblemCode.TAMPERED;
  }

  /**
   * What was found about a file, and that what it lists cannot be read.
   *
   * @param found what was found about the file itself
   */
  static CheckedFile below(CheckedFile found, Throwable failure) {
    FileProblem problem =
        found.problem() == null
            ? problem("what it lists cannot be read: ", failure)
            : new FileProblem(found.code(), found.words() + "; what it lists was not checked");
    return new CheckedFile(found.magic(), found.length(), found.bytesRead(), problem);
  }

  /** Why, in one line and without the hint, which is for another situation. */
  static String reason(Throwable failure) {
    Throwable root = failure;
    while (root.getCause() != null && !(root instanceof IcebergCryptoException)) {
      root = root.getCause();
    }

    if (root instanceof TaskKilledException killed) {
      throw killed;
    } else if (root instanceof IcebergCryptoException known) {
      return known.problem();
    }

    return root instanceof NotFoundException ? FileProblem.MISSING.words() : root.toString();
  }

  /**
   * The error to raise when the check itself failed.
   *
   * @param table what was checked
   * @param what the files that it had come to
   */
  static IcebergCryptoException error(String table, String what, Throwable failure) {
    Throwable root = failure;
    while (root.getCause() != null && !(root instanceof IcebergCryptoException)) {
      root = root.getCause();
    }

    return root instanceof IcebergCryptoException known
        ? known
        : new IcebergCryptoException(
                String.format("its %s could not be checked: %s", what, root),
                "The check failed, which says nothing about the table. Mend what failed, and check"
                    + " again.",
                failure)
            .inTable(table);
  }
}
