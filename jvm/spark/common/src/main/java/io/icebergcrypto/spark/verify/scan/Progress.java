package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.format.Json;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.util.LongAccumulator;

/**
 * How far a verification is. Tasks count what they have checked; Spark adds up when a task ends, so
 * another thread may ask at any time. A task that is repeated counts twice.
 */
public final class Progress {
  private record Step(String name, long files, long bytes, long startNanos) {}

  private final LongAccumulator files;
  private final LongAccumulator bytes;
  private volatile Step step = new Step("starting", 0, 0, System.nanoTime());

  /** Starts with nothing done. */
  public Progress(SparkContext context) {
    this.files = context.longAccumulator("files checked");
    this.bytes = context.longAccumulator("bytes of files checked");
  }

  /**
   * Begins a step.
   *
   * @param name what is checked
   * @param ofFiles how many files it has; 0 when that is not known
   * @param ofBytes their length together
   */
  public void begin(String name, long ofFiles, long ofBytes) {
    files.reset();
    bytes.reset();
    this.step = new Step(name, ofFiles, ofBytes, System.nanoTime());
  }

  /** What a task counts with. */
  public Counter counter() {
    return new Counter(files, bytes);
  }

  /**
   * Where it is, as JSON: step, files, files_total, bytes, bytes_total, seconds, seconds_left (null
   * when that is not known).
   */
  public String json() {
    Step now = step;
    double seconds = (System.nanoTime() - now.startNanos()) / 1e9;
    long doneFiles = Math.min(files.sum(), now.files());
    long doneBytes = Math.min(bytes.sum(), now.bytes());
    double share =
        Math.min(share(doneFiles, now.files()), share(doneBytes, Math.max(now.bytes(), 1)));
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("step", now.name());
    json.put("files", doneFiles);
    json.put("files_total", now.files());
    json.put("bytes", doneBytes);
    json.put("bytes_total", now.bytes());
    json.put("seconds", seconds);
    json.put("seconds_left", share > 0 ? seconds * (1 - share) / share : null);
    return Json.of(json);
  }

  private static double share(long done, long all) {
    return all == 0 ? 0 : (double) done / all;
  }

  /** Counts in a task. */
  public record Counter(LongAccumulator files, LongAccumulator bytes) implements Serializable {
    /** Counts a file that was checked. */
    public void add(long length) {
      files.add(1L);
      bytes.add(Math.max(length, 0L));
    }
  }
}
