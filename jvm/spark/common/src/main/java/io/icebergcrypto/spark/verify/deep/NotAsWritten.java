package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import java.security.GeneralSecurityException;

/** The errors about bytes that are not what was written. */
final class NotAsWritten {
  private static final String HINT =
      "The file was changed or exchanged after it was written. Restore it from a backup or from an"
          + " object version; its table's other snapshots may not need it.";

  private NotAsWritten() {}

  static TamperedException because(String problem) {
    return because(problem, null);
  }

  /** The error for a part that is not encrypted. */
  static TamperedException plaintext(String problem) {
    return new TamperedException(ProblemCode.PLAINTEXT, problem, HINT, null);
  }

  static TamperedException because(String problem, Exception cause) {
    return new TamperedException(problem, HINT, cause);
  }

  /**
   * The error for a part whose tag is wrong.
   *
   * @param what the part
   * @param failure what Iceberg threw
   * @throws RuntimeException the failure itself when it is not about the tag
   */
  static TamperedException wrongTag(String what, RuntimeException failure) {
    if (!(failure.getCause() instanceof GeneralSecurityException)) {
      throw failure;
    }

    return because(
        what + " does not open with the file's key: it was changed, or is from elsewhere", failure);
  }
}
