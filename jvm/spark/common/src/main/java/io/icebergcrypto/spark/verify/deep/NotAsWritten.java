package io.icebergcrypto.spark.verify.deep;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.ProblemCode;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.format.FileInspector;

/** The errors about bytes that are not what was written, and about those that cannot be checked. */
final class NotAsWritten {
  private static final String HINT =
      "The file was changed or replaced after it was written. " + FileInspector.RESTORE;

  private NotAsWritten() {}

  static TamperedException because(String problem) {
    return new TamperedException(problem, HINT);
  }

  /**
   * The error for what is as its writer wrote it, as far as tags tell, and is unknown here: of a
   * later version, or of a writer that does not keep to the specification.
   */
  static IcebergCryptoException unknown(String problem, Exception cause) {
    return new IcebergCryptoException(
        problem,
        "It may be of a later version of Parquet or Iceberg, or of another program: find out which"
            + " wrote the file, and update.",
        cause);
  }

  static IcebergCryptoException unknown(String problem) {
    return unknown(problem, null);
  }

  /** The error for data of which nobody can tell whether it was changed. */
  static TamperedException unauthenticated(String problem) {
    return new TamperedException(ProblemCode.UNAUTHENTICATED, problem, HINT, null);
  }

  /** The error for a part that is not encrypted. */
  static PlaintextException plaintext(String problem) {
    return new PlaintextException(
        problem,
        "Find out which program wrote the file, and have it written again, with all of it"
            + " encrypted; for Parquet, in pages of version 1.");
  }

  /**
   * The error for a part whose tag is wrong.
   *
   * @param what the part
   * @param failure what Iceberg threw
   * @throws RuntimeException the failure itself when it is not about the tag
   */
  static TamperedException wrongTag(String what, RuntimeException failure) {
    if (!Evidence.isWrongTag(failure)) {
      throw failure;
    }

    return new TamperedException(
        what + " fails authentication with the file's key: it was changed, or comes from elsewhere",
        HINT,
        failure);
  }
}
