package io.icebergcrypto.spark.verify;

import io.icebergcrypto.CancelledException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.kms.call.Causes;
import java.util.Optional;
import org.apache.iceberg.exceptions.NotFoundException;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;

/**
 * Tells two kinds of failure apart: the check met bytes that are not what was written, which is a
 * finding about the table; or the check itself failed (KMS, network, storage, Spark, a later
 * version, a library that is missing), which says nothing about the table. docs/tamper.md has the
 * table of what may accuse.
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
        return known instanceof TamperedException || known instanceof PlaintextException
            ? known
            : null;
      } else if (cause instanceof NotFoundException) { // not Java's: of a file of Spark's, say
        return cause;
      }
    }

    return null;
  }

  /** What a failure to read what has a file's key says about the file. */
  static FileResult of(long length, RuntimeException failure) {
    return new FileResult(null, length, 0, problemOfWhatIsThere("", failure));
  }

  /**
   * What a failure comes to.
   *
   * @param what what failed, before the reason
   */
  static FileProblem problem(String what, Throwable failure) {
    if (TaskContext.get() == null) { // a task that is cancelled ends itself, and others may hit it
      CancelledException.rethrow(failure);
    }

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
  static FileResult below(FileResult found, Throwable failure) {
    FileProblem problem =
        found.problem() == null
            ? problemOfWhatIsThere("what it lists cannot be read: ", failure)
            : new FileProblem(found.code(), found.words() + "; what it lists was not checked");
    return new FileResult(found.magic(), found.length(), found.bytesRead(), problem);
  }

  /** The same for a file that is there: its key, or what it lists, is what was not found. */
  static FileProblem problemOfWhatIsThere(String what, Throwable failure) {
    FileProblem problem = problem(what, failure);
    return problem.code() == ProblemCode.MISSING
        ? new FileProblem(ProblemCode.UNREADABLE, what + message(failure))
        : problem;
  }

  private static String message(Throwable failure) {
    Throwable gone = finding(failure);
    return gone.getMessage() == null ? gone.toString() : gone.getMessage();
  }

  /** Why, in one line and without the hint, which is for another situation. */
  static String reason(Throwable failure) {
    Optional<IcebergCryptoException> typed = Causes.typed(failure);
    if (typed.isPresent()) {
      return typed.get().problem();
    }

    Throwable root = Causes.root(failure);
    if (root instanceof TaskKilledException killed) {
      throw killed;
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
    CancelledException.rethrow(failure);
    return Causes.typed(failure)
        .orElseGet(
            () ->
                new IcebergCryptoException(
                        String.format(
                            "its %s could not be checked: %s", what, Causes.root(failure)),
                        "The check failed, which says nothing about the table. Fix what failed, and"
                            + " check again.",
                        failure)
                    .inTable(table));
  }
}
