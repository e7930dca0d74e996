package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.format.Outcome;
import org.apache.spark.sql.SparkSession;

/**
 * What it took to encrypt a table in place, or would take.
 *
 * @param table the table's full name
 * @param keyId the master key
 * @param refs how many branches and tags it has
 * @param files how many data files they consist of
 * @param bytes the length of these
 * @param copiedFiles how many of them this call copied, or would copy
 * @param filesLeft how many are not copied yet
 * @param rows how many rows main has; null as long as it is not encrypted
 * @param kmsCalls how many calls of the KMS the driver made, or would make
 * @param seconds how long what is left would take; null when nothing is
 * @param plaintextMetadata a copy of the metadata that it had, which leads to the plain files; null
 *     as long as it is not encrypted
 * @param dryRun whether the call was to change nothing
 * @param committed whether the table is encrypted now: otherwise the call has copied a portion,
 *     which is not the last, or was a dry run
 */
public record EncryptionReport(
    String table,
    String keyId,
    int refs,
    long files,
    long bytes,
    long copiedFiles,
    long filesLeft,
    Long rows,
    int kmsCalls,
    Long seconds,
    String plaintextMetadata,
    boolean dryRun,
    boolean committed)
    implements Outcome {
  /** The rule of thumb: what one core copies, verifies and compares in a second. */
  private static final long BYTES_PER_CORE_SECOND = 8L << 20;

  /** The bytes a second that a call probably copies; at most those that it may. */
  static long usualRate(SparkSession spark, long throttle) {
    int cores = Math.max(1, spark.sparkContext().defaultParallelism());
    return Math.min(BYTES_PER_CORE_SECOND * cores, throttle);
  }

  @Override
  public String message() {
    if (dryRun) {
      return String.format(
          "%d of %d data files would be copied, in about %d s (by a rule of thumb of %d MiB per"
              + " second and core; a call with max_bytes measures it); nothing was changed."
              + " Streams that read the table will need new checkpoints.",
          copiedFiles, files, seconds, BYTES_PER_CORE_SECOND >> 20);
    }

    return committed
        ? String.format(
            "encrypted with '%s'; %d data files copied, every file verified, all rows compared;"
                + " the plaintext files remain until purge_plaintext deletes them",
            keyId, copiedFiles)
        : String.format(
            "NOT encrypted yet: %d of %d data files are copied (%d %%), and at this call's rate"
                + " the rest takes about %d s; call it again to continue",
            files - filesLeft, files, 100 * (files - filesLeft) / files, seconds);
  }
}
