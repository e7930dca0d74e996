package io.icebergcrypto.spark;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.format.Json;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;

/** What a verification found. Holds the checked files as a cached DataFrame until it is closed. */
public final class VerifyResult implements AutoCloseable {
  private static final int MAX_PROBLEMS = 1000;

  /**
   * What was verified.
   *
   * @param table the table's name
   * @param keyId its master key, null when it is not encrypted
   * @param formatVersion its Iceberg format version
   * @param allSnapshots whether files of older snapshots were checked too
   * @param snapshots how many snapshots were looked at
   */
  record Subject(
      String table, String keyId, int formatVersion, boolean allSnapshots, int snapshots) {}

  /**
   * Something wrong.
   *
   * @param kind the kind of file, or {@code table}
   * @param path the file, or the table's name
   * @param problem what is wrong
   * @param hint what to do
   */
  record Problem(String kind, String path, String problem, String hint) {
    Map<String, Object> toMap() {
      Map<String, Object> map = new LinkedHashMap<>();
      map.put("kind", kind);
      map.put("path", path);
      map.put("problem", problem);
      map.put("hint", hint);
      return map;
    }
  }

  private final Subject subject;
  private final List<Dataset<Row>> levels;
  private final Dataset<Row> files;
  private final List<Problem> problems;
  private final List<Map<String, Object>> counts = new ArrayList<>();
  private final double seconds;
  private long problemCount;
  private long fileCount;
  private long byteCount;

  VerifyResult(
      Subject subject, List<Dataset<Row>> levels, List<Problem> found, long startNanos) {
    this.subject = subject;
    this.levels = levels;
    this.files = levels.stream().reduce(Dataset::union).orElseThrow();
    this.problems = new ArrayList<>(found);
    this.problemCount = found.size();
    count();
    collectProblems();
    this.seconds = (System.nanoTime() - startNanos) / 1e9;
  }

  private void count() {
    List<Row> groups =
        files
            .groupBy("kind", "magic", "encrypted")
            .agg(
                functions.count("*").as("files"),
                functions.sum(functions.expr("greatest(length, 0)")).as("bytes"),
                functions.count("problem").as("problems"))
            .orderBy("kind", "magic")
            .collectAsList();
    for (Row row : groups) {
      Map<String, Object> group = new LinkedHashMap<>();
      group.put("kind", row.getString(0));
      group.put("magic", row.getString(1));
      group.put("encrypted", row.getBoolean(2));
      group.put("files", row.getLong(3));
      group.put("bytes", row.getLong(4));
      counts.add(group);
      this.fileCount += row.getLong(3);
      this.byteCount += row.getLong(4);
      this.problemCount += row.getLong(5);
    }
  }

  private void collectProblems() {
    for (Row row :
        files.where("problem is not null").orderBy("path").limit(MAX_PROBLEMS).collectAsList()) {
      String kind = row.getAs("kind");
      String hint = FileKind.ofLabel(kind).hint();
      problems.add(new Problem(kind, row.getAs("path"), row.getAs("problem"), hint));
    }
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
    json.put("ok", problemCount == 0);
    json.put("deep", false);
    json.put("all_snapshots", subject.allSnapshots());
    json.put("snapshots", subject.snapshots());
    json.put("files", fileCount);
    json.put("bytes", byteCount);
    json.put("seconds", seconds);
    json.put("counts", counts);
    json.put("problem_count", problemCount);
    json.put("problems", problems.stream().map(Problem::toMap).toList());
    return Json.object(json);
  }

  /** Releases the cached DataFrame. */
  @Override
  public void close() {
    levels.forEach(Dataset::unpersist);
  }
}
