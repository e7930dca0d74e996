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
 * @param seconds how long what is left would take; null when nothing is
 * @param plaintextMetadata a copy of the metadata that it had, which leads to the plain files; null
 *     as long as it is not encrypted
 * @param state what the call has done
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
    State state) {
  /** The rule of thumb: what one core copies, verifies and compares in a second. */
  private static final long BYTES_PER_CORE_SECOND = 8L << 20;

  /** A check of the key. Made before the others are counted. */
  private static final int CHECK_CALLS = 2;

  /** A KEK is wrapped, and unwrapped to see that it can be. */
  private static final int NEW_KEK_CALLS = 2;

  /** It is unwrapped when a run continues. */
  private static final int OLD_KEK_CALLS = 1;

  /** What a call has done. */
  public enum State {
    /** Nothing: it was a dry run. */
    PLANNED,
    /** It has copied a portion, which is not the last. */
    BEGUN,
    /** The table is encrypted. */
    DONE
  }

  static EncryptionReport planned(
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      boolean continued,
      long throttle,
      SparkSession spark) {
    int cores = Math.max(1, spark.sparkContext().defaultParallelism());
    long rate = Math.min(BYTES_PER_CORE_SECOND * cores, throttle);
    int kmsCalls = continued ? OLD_KEK_CALLS : NEW_KEK_CALLS;
    long wouldCopy = plan.filesLeft();
    return of(
        State.PLANNED, plaintext, base, plan, wouldCopy, -1, kmsCalls, seconds(plan, rate), null);
  }

  /**
   * Some of it was copied.
   *
   * @param rate how many bytes a second
   */
  static EncryptionReport begun(
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      long copiedFiles,
      long kmsCalls,
      long rate) {
    return of(
        State.BEGUN, plaintext, base, plan, copiedFiles, -1, kmsCalls, seconds(plan, rate), null);
  }

  static EncryptionReport done(
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      long rows,
      long copiedFiles,
      String plaintextMetadata,
      long kmsCalls) {
    return of(
        State.DONE, plaintext, base, plan, copiedFiles, rows, kmsCalls, null, plaintextMetadata);
  }

  private static EncryptionReport of(
      State state,
      PlaintextTable plaintext,
      TableMetadata base,
      CopyPlan plan,
      long copiedFiles,
      long rows,
      long kmsCalls,
      Long seconds,
      String plaintextMetadata) {
    return new EncryptionReport(
        plaintext.name(),
        plaintext.keyId(),
        Version.byRef(plaintext.name(), base).size(),
        plan.files(),
        plan.bytes(),
        copiedFiles,
        plan.filesLeft(),
        rows,
        (int) kmsCalls + CHECK_CALLS,
        seconds,
        plaintextMetadata,
        state);
  }

  private static long seconds(CopyPlan plan, long rate) {
    return plan.bytesLeft() / rate + 1;
  }

  /** One sentence for people. */
  public String message() {
    return switch (state) {
      case PLANNED ->
          String.format(
              "%d of %d data files would be copied, in about %d s (by a rule of thumb of %d MiB per"
                  + " second and core; a call with max_bytes measures it); nothing was changed."
                  + " Streams that read the table will need new checkpoints.",
              copiedFiles, files, seconds, BYTES_PER_CORE_SECOND >> 20);
      case BEGUN ->
          String.format(
              "NOT encrypted yet: %d of %d data files are copied (%d %%), and at this call's rate"
                  + " the rest takes about %d s; call it again to continue",
              files - filesLeft, files, 100 * (files - filesLeft) / files, seconds);
      case DONE ->
          String.format(
              "encrypted with '%s'; %d data files copied, every file verified, all rows compared;"
                  + " the plaintext files remain until purge_plaintext deletes them",
              keyId, copiedFiles);
    };
  }

  /** Whether the table is encrypted now. */
  public boolean committed() {
    return state == State.DONE;
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
    values.put("rows", committed() ? rows : null);
    values.put("kms_calls", kmsCalls);
    values.put("seconds", seconds);
    values.put("plaintext_metadata", plaintextMetadata);
    values.put("dry_run", state == State.PLANNED);
    values.put("committed", committed());
    values.put("message", message());
    return values;
  }
}
