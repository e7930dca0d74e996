package io.icebergcrypto.spark.verify;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import org.apache.hadoop.fs.ChecksumException;
import org.apache.iceberg.exceptions.NotFoundException;

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
          || cause
              .getClass()
              .getName()
              .contains("org.apache.avro.")) { // relocated in Iceberg's jar
        return cause;
      }
    }

    return null;
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
