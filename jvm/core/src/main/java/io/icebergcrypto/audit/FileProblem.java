package io.icebergcrypto.audit;

import io.icebergcrypto.ProblemCode;

/**
 * What is wrong with a file, or kept it from being checked.
 *
 * @param code for programs
 * @param words for people: one line, without a hint
 */
public record FileProblem(ProblemCode code, String words) {
  /** A file that is not there. */
  public static final FileProblem MISSING =
      new FileProblem(ProblemCode.MISSING, "it does not exist");
}
