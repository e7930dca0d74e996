package io.icebergcrypto.spark.migrate;

import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.lifecycle.encrypt.Version;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.iceberg.TableMetadata;
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
 * @param rows how many rows main has; -1 as long as it is not encrypted
 * @param kmsCalls how many calls of the KMS the driver made, or would make
 * @param seconds how long it would take, by a rule of thumb; null when it was done
 * @param plaintextMetadata a copy of the metadata that it had, which leads to the plain files; null
 *     in a dry run
 * @param committed whether the table is encrypted now
 */
public record EncryptionReport(
    String table,
    String keyId,
    int refs,
    long files,
    long bytes,
    long copiedFiles,
    long filesLeft,
    long rows,
    int kmsCalls,
    Long seconds,
    String plaintextMetadata,
    boolean committed) {
  /** The rule of thumb: what one core copies, verifies and compares in a second. */
  static final long BYTES_PER_CORE_SECOND = 8L << 20;

  /** A check of the key. Made before the others are counted. */
  private static final int CHECK_CALLS = 2;

  /** A KEK is wrapped, and unwrapped to see that it can be. */
  private static final int NEW_KEK_CALLS = 2;

  /** It is unwrapped when a run continues. */
  private static final int OLD_KEK_CALLS = 1;

  static EncryptionReport planned(
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      boolean continued,
      long throttle,
      SparkSession spark) {
    int cores = Math.max(1, spark.sparkContext().defaultParallelism());
    long rate = Math.min(BYTES_PER_CORE_SECOND * cores, throttle);
    return new EncryptionReport(
        plaintext.name(),
        plaintext.keyId(),
        Version.byRef(plaintext.name(), base).size(),
        plan.files(),
        plan.bytes(),
        plan.filesLeft(),
        plan.filesLeft(),
        -1,
        CHECK_CALLS + (continued ? OLD_KEK_CALLS : NEW_KEK_CALLS),
        plan.bytesLeft() / rate + 1,
        null,
        false);
  }

  /** Some of it was copied. */
  static EncryptionReport begun(
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      long copiedFiles,
      long kmsCalls) {
    return new EncryptionReport(
        plaintext.name(),
        plaintext.keyId(),
        Version.byRef(plaintext.name(), base).size(),
        plan.files(),
        plan.bytes(),
        copiedFiles,
        plan.filesLeft(),
        -1,
        (int) kmsCalls + CHECK_CALLS,
        null,
        null,
        false);
  }

  static EncryptionReport done(
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      long rows,
      long copiedFiles,
      String plaintextMetadata,
      long kmsCalls) {
    return new EncryptionReport(
        plaintext.name(),
        plaintext.keyId(),
        Version.byRef(plaintext.name(), base).size(),
        plan.files(),
        plan.bytes(),
        copiedFiles,
        0,
        rows,
        (int) kmsCalls + CHECK_CALLS,
        null,
        plaintextMetadata,
        true);
  }

  /** One sentence for people. */
  public String message() {
    if (!committed && seconds == null) {
      return String.format(
          "NOT encrypted yet: %d of %d data files are copied (%d %%); call it again to continue",
          files - filesLeft, files, 100 * (files - filesLeft) / files);
    }

    return committed
        ? String.format(
            "encrypted with '%s'; %d data files copied, every file verified, all rows compared; the"
                + " plaintext files remain until purge_plaintext deletes them",
            keyId, copiedFiles)
        : String.format(
            "%d of %d data files would be copied, in about %d s (by a rule of thumb of %d MiB per"
                + " second and core); nothing was changed. Streams that read the table will need"
                + " new checkpoints.",
            copiedFiles, files, seconds, BYTES_PER_CORE_SECOND >> 20);
  }

  /** The names and values for JSON and rows. */
  public Map<String, Object> toMap() {
    Map<String, Object> values = new LinkedHashMap<>();
    values.put("table", table);
    values.put("key_id", keyId);
    values.put("refs", refs);
    values.put("files", files);
    values.put("bytes", bytes);
    values.put("copied_files", copiedFiles);
    values.put("files_left", filesLeft);
    values.put("rows", committed ? rows : null);
    values.put("kms_calls", kmsCalls);
    values.put("seconds", seconds);
    values.put("plaintext_metadata", plaintextMetadata);
    values.put("committed", committed);
    values.put("message", message());
    return values;
  }
}
