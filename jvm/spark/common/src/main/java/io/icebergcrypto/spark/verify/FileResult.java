package io.icebergcrypto.spark.verify;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.audit.FileProblem;
import io.icebergcrypto.format.FileMagic;

/**
 * What a check found about one file.
 *
 * @param magic what its first bytes say, null when they could not be read
 * @param length its length in bytes as stored; the expected one when the storage was not asked, -1
 *     when neither is known
 * @param bytesRead how many bytes were read of it
 * @param problem what is wrong, or why it could not be checked; null when nothing is
 */
public record FileResult(FileMagic magic, long length, long bytesRead, FileProblem problem) {
  /** Whether its first bytes say that it is encrypted. */
  public boolean encrypted() {
    return magic != null && magic.encrypted();
  }

  /** What is wrong, for programs; null when nothing is. */
  public ProblemCode code() {
    return problem == null ? null : problem.code();
  }

  /** What is wrong, for people; null when nothing is. */
  public String words() {
    return problem == null ? null : problem.words();
  }

  /** Whether it could not be checked: storage or KMS failed, which says nothing about the file. */
  public boolean unchecked() {
    return code() == ProblemCode.UNREADABLE;
  }
}
