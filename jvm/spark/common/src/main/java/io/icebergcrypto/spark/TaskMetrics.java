package io.icebergcrypto.spark;

import io.icebergcrypto.io.stream.FileMetrics;
import io.icebergcrypto.io.stream.FileMetrics.OfThread;
import io.icebergcrypto.spark.table.TaskAccumulator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.util.LongAccumulator;
import org.apache.spark.util.TaskCompletionListener;

/**
 * What each task encrypts and decrypts, as Spark's accumulators: its UI shows them on the page of a
 * stage, by task and in all, and so do its REST API and the history server. A task that has nothing
 * to do with encrypted files does not report.
 *
 * <p>The driver makes the accumulators, and their serialized form goes to the executors with the
 * plugin's settings.
 */
final class TaskMetrics {
  static final String ENCRYPTED = "encrypted files written";
  static final String DECRYPTED = "encrypted files read";
  static final String WRITTEN = "bytes of encrypted files written";

  private final Map<String, String> accumulators;

  /** On an executor. */
  TaskMetrics(Map<String, String> accumulators) {
    this.accumulators = accumulators;
  }

  /** On the driver: the accumulators. Spark forgets one that nobody holds. */
  static Map<String, LongAccumulator> registered(SparkContext spark) {
    Map<String, LongAccumulator> made = new LinkedHashMap<>();
    for (String name : new String[] {ENCRYPTED, DECRYPTED, WRITTEN}) {
      made.put(name, spark.longAccumulator(name));
    }

    return made;
  }

  /** The accumulators, for executors. */
  static Map<String, String> serialized(Map<String, LongAccumulator> accumulators) {
    Map<String, String> texts = new LinkedHashMap<>();
    accumulators.forEach((name, one) -> texts.put(name, TaskAccumulator.serialized(one)));
    return texts;
  }

  /** Begins to measure the task that this thread runs. */
  void start() {
    OfThread before = FileMetrics.ofThread();
    TaskCompletionListener listener = task -> report(task, FileMetrics.ofThread().since(before));
    TaskContext.get().addTaskCompletionListener(listener);
  }

  private void report(TaskContext task, OfThread done) {
    if (done.encrypted() > 0) {
      // as Iceberg's writers tell Spark when they commit
      long bytes = task.taskMetrics().outputMetrics().bytesWritten();
      FileMetrics.written(bytes);
      add(ENCRYPTED, done.encrypted());
      add(WRITTEN, bytes);
    }

    if (done.decrypted() > 0) {
      add(DECRYPTED, done.decrypted());
    }
  }

  private void add(String name, long more) {
    String serialized = accumulators.get(name);
    if (serialized != null) {
      TaskAccumulator.<LongAccumulator>deserialized(serialized).add(more);
    }
  }
}
