package io.icebergcrypto.spark.table;

import io.icebergcrypto.format.Json;
import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.SparkContext;
import org.apache.spark.util.LongAccumulator;

/**
 * How far a call is that takes long. Tasks count what they have checked; Spark adds up when a task
 * ends, so another thread may ask at any time. A task that is repeated counts twice.
 */
public final class Progress {
  private static final String TABLES = "tables";
  private static final String STARTING = "starting";

  private record Step(String name, String unit, long count, long bytes, long startNanos) {}

  private final LongAccumulator files;
  private final LongAccumulator bytes;
  private final AtomicLong doneTables = new AtomicLong(); // by several threads of the driver
  private volatile int ofTables;
  private volatile String table;
  private volatile Step step = new Step(STARTING, "files", 0, 0, System.nanoTime());

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
    begin(new Step(name, "files", ofFiles, ofBytes, System.nanoTime()));
  }

  private void begin(Step next) {
    files.reset();
    bytes.reset();
    this.step = next;
  }

  /** Begins what is done to many tables. */
  void beginTables(int count) {
    doneTables.set(0);
    this.ofTables = count;
    beginTable(null);
  }

  /** Begins one of them, which may have steps of its own; null: several are done at once. */
  void beginTable(String table) {
    this.table = table;
    String name = table == null ? TABLES : STARTING;
    begin(new Step(name, TABLES, ofTables, 0, System.nanoTime()));
  }

  /** One of them is done. */
  void endTable() {
    doneTables.incrementAndGet();
  }

  /** What a task counts with. */
  public Counter counter() {
    return new Counter(files, bytes);
  }

  /**
   * Where it is, as JSON: step, unit ("files" or "tables"), done, total, bytes, bytes_total,
   * seconds, seconds_left (null when that is not known); of many tables also the table (null when
   * several are done at once), tables_done and tables_total.
   */
  public String json() {
    Step now = step;
    double seconds = (System.nanoTime() - now.startNanos()) / 1e9;
    long sum = now.unit().equals(TABLES) ? doneTables.get() : files.sum();
    long done = Math.min(sum, now.count());
    long doneBytes = Math.min(bytes.sum(), now.bytes());
    double share = share(done, now.count());
    if (now.bytes() > 0) {
      share = Math.min(share, share(doneBytes, now.bytes()));
    }

    Map<String, Object> json = new LinkedHashMap<>();
    json.put("step", now.name());
    json.put("unit", now.unit());
    json.put("done", done);
    json.put("total", now.count());
    json.put("bytes", doneBytes);
    json.put("bytes_total", now.bytes());
    json.put("seconds", seconds);
    json.put("seconds_left", share > 0 ? seconds * (1 - share) / share : null);
    json.put("table", table);
    json.put("tables_done", doneTables.get());
    json.put("tables_total", ofTables);
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
