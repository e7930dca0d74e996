package io.icebergcrypto.spark.verify;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.diagnosis.Finding;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.spark.verify.scan.Problem;
import io.icebergcrypto.spark.verify.scan.Tally;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.IcebergBuild;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/** What a verification found. Holds the checked files as cached DataFrames until it is closed. */
public final class VerifyResult implements AutoCloseable {
  /** The version of what {@link #json} gives. */
  private static final int SCHEMA_VERSION = 1;

  private final Map<String, Object> subject;
  private final Instant start;
  private final Instant end = Instant.now();
  private final Dataset<Row> files;
  private final Tally tally;
  private final Finding plaintextLeft;
  private final Runnable release;

  /**
   * Takes what was found.
   *
   * @param subject what was verified, as JSON has it
   * @param files the checked files, of {@link FileRow#CHECKED}
   * @param plaintextLeft what {@link Finding#ofPlaintextLeft} says of the table
   * @param release lets go of what is cached
   */
  VerifyResult(
      Map<String, Object> subject,
      Instant start,
      Dataset<Row> files,
      Tally tally,
      Finding plaintextLeft,
      Runnable release) {
    this.subject = subject;
    this.start = start;
    this.files = files;
    this.tally = tally;
    this.plaintextLeft = plaintextLeft;
    this.release = release;
  }

  /**
   * The checked files: kind, path, format, length, magic, encrypted, problem (null: none),
   * unchecked, code (null: none).
   */
  public Dataset<Row> files() {
    return files.select(
        functions.col("kind"),
        functions.col("path"),
        functions.col("format"),
        functions.col("length"),
        functions.col("magic"),
        functions.col("encrypted"),
        functions.col("problem"),
        Tally.UNCHECKED.as("unchecked"),
        functions.col("code"));
  }

  /** Whether all was checked, and nothing is wrong. */
  public boolean ok() {
    return tally.problemCount() == 0;
  }

  /** The sums for each kind and magic. */
  public List<Tally.Count> counts() {
    return tally.counts();
  }

  /** The first 1000 problems. */
  public List<Problem> problems() {
    return plaintextLeft == null
        ? tally.problems()
        : tally.problems().stream().map(this::explained).toList();
  }

  /** Most plaintext of a table that was encrypted in place is from before. */
  private Problem explained(Problem problem) {
    return problem.isPlaintextFile()
        ? problem.withHint(
            plaintextLeft.hint() + " If this file is not among them: " + problem.hint())
        : problem;
  }

  /** Where plaintext of the table is that was encrypted in place; null if it has none. */
  public Finding plaintextLeft() {
    return plaintextLeft;
  }

  /** How many files were taken over from recorded outcomes; null: none were. */
  public String notRead() {
    Object number = subject.get("resumed_files");
    if (number == null || number.equals(0L)) {
      return null;
    }

    return String.format(
        "%s files were not read again: %s.",
        number,
        subject.containsKey("since")
            ? "the earlier report vouches for them"
            : "an earlier run recorded them as right");
  }

  /** How many problems there are, and how many files could not be checked. */
  public String summary() {
    return String.format(
        "problems: %d, not checked: %d",
        tally.problemCount() - tally.uncheckedCount(), tally.uncheckedCount());
  }

  /** Whether no manifest was found, and something could not be checked: a manifest list, say. */
  public boolean isCutOff() {
    return tally.uncheckedCount() > 0
        && tally.counts().stream()
            .noneMatch(count -> count.kind().equals(FileKind.MANIFEST.label()));
  }

  /** How many files were checked. */
  public long fileCount() {
    return tally.files();
  }

  /** Their length together. */
  public long byteCount() {
    return tally.bytes();
  }

  /** {@link #toMap} as JSON. */
  public String json() {
    return Json.of(toMap());
  }

  /** All but the files, for JSON; lists the first 1000 problems. */
  public Map<String, Object> toMap() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("schema_version", SCHEMA_VERSION);
    json.putAll(subject);
    json.put("versions", versions());
    json.put("started_at", time(start));
    json.put("ended_at", time(end));
    json.put("seconds", Duration.between(start, end).toMillis() / 1000.0);
    json.put("ok", ok());
    json.put("files", tally.files());
    json.put("bytes", tally.bytes());
    json.put("counts", tally.counts().stream().map(Json::map).toList());
    json.put("problem_count", tally.problemCount() - tally.uncheckedCount());
    json.put("unchecked_count", tally.uncheckedCount());
    json.put("problems", problems());
    return json;
  }

  private Map<String, String> versions() {
    String ours = VerifyResult.class.getPackage().getImplementationVersion();
    Map<String, String> versions = new LinkedHashMap<>();
    versions.put("iceberg_crypto", ours == null ? "unknown" : ours);
    versions.put("iceberg", IcebergBuild.version());
    versions.put("spark", files.sparkSession().version());
    versions.put("java", System.getProperty("java.version"));
    return versions;
  }

  private static String time(Instant time) {
    return time.truncatedTo(ChronoUnit.MILLIS).toString();
  }

  /** Releases the cached DataFrames. Calling it again does nothing. */
  @Override
  public void close() {
    release.run();
  }
}
