package io.icebergcrypto.spark.verify;

import io.icebergcrypto.format.Json;
import io.icebergcrypto.integrity.MetadataAuthentication;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;

/** What a verification found. Holds the checked files as a cached DataFrame until it is closed. */
public final class VerifyResult implements AutoCloseable {
  /**
   * What was verified.
   *
   * @param table the table's name
   * @param keyId its master key, null when it is not encrypted
   * @param formatVersion its Iceberg format version
   * @param metadata whether its metadata is authenticated; without that the files that it names may
   *     not be all, or those of another state
   * @param allSnapshots whether files of older snapshots were checked too
   * @param snapshots how many snapshots were looked at
   */
  record Subject(
      String table,
      String keyId,
      int formatVersion,
      MetadataAuthentication metadata,
      boolean allSnapshots,
      int snapshots) {}

  /**
   * Something wrong.
   *
   * @param kind the kind of file, or {@code table}
   * @param path the file, or the table's name
   * @param problem what is wrong
   * @param hint what to do
   */
  record Problem(String kind, String path, String problem, String hint) {}

  private final Subject subject;
  private final List<Dataset<Row>> levels;
  private final Dataset<Row> files;
  private final Tally tally;
  private final double seconds;

  VerifyResult(Subject subject, List<Dataset<Row>> levels, Tally tally, double seconds) {
    this.subject = subject;
    this.levels = levels;
    this.files = levels.stream().reduce(Dataset::union).orElseThrow();
    this.tally = tally;
    this.seconds = seconds;
  }

  /** The checked files: kind, path, format, length, magic, encrypted, problem (null: none). */
  public Dataset<Row> files() {
    return files;
  }

  /** All but the files, as one JSON object; lists the first 1000 problems. */
  public String json() {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("table", subject.table());
    json.put("key_id", subject.keyId());
    json.put("format_version", subject.formatVersion());
    json.put("metadata_authenticated", subject.metadata().authenticated());
    json.put("metadata_authentication", subject.metadata().detail());
    json.put("ok", tally.problemCount() == 0);
    json.put("deep", false);
    json.put("all_snapshots", subject.allSnapshots());
    json.put("snapshots", subject.snapshots());
    json.put("files", tally.files());
    json.put("bytes", tally.bytes());
    json.put("seconds", seconds);
    json.put("counts", tally.counts());
    json.put("problem_count", tally.problemCount());
    json.put("problems", tally.problems());
    return Json.of(json);
  }

  /** Releases the cached DataFrame. */
  @Override
  public void close() {
    levels.forEach(Dataset::unpersist);
  }
}
