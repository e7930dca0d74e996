package io.icebergcrypto.lifecycle.encrypt;

import io.icebergcrypto.CancelledException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.EnvironmentContext;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.SnapshotSummary;
import org.apache.iceberg.Table;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.relocated.com.google.common.collect.Iterables;
import org.apache.iceberg.relocated.com.google.common.collect.Streams;
import org.apache.iceberg.util.SnapshotUtil;
import org.apache.iceberg.util.WapUtil;

/**
 * How far exactly-once sinks have written a branch. They record it in the summaries of their
 * snapshots, and after a failure look for it through the branch's ancestors: Spark for the newest
 * epoch of its query, Flink for the newest checkpoint of its job and operator, Kafka Connect for
 * the newest offsets of its control topic and consumer group, and Iceberg itself for a WAP id that
 * was published.
 *
 * <p>A summary holds each name once. So a branch that several queries have written needs as many
 * snapshots, in the order in which they wrote.
 */
public final class SinkProgress {
  /** How many are kept of each kind: queries, Flink's operators, WAP ids, and other names. */
  static final int MAX = 100;

  /** Each begins with what another commit has changed meanwhile. */
  private static final int ROUNDS = 5;

  private static final String SPARK_QUERY = "spark.sql.streaming.queryId";
  private static final String SPARK_EPOCH = "spark.sql.streaming.epochId";
  private static final String FLINK_JOB = "flink.job-id";
  private static final String FLINK_OPERATOR = "flink.operator-id"; // older ones have none
  private static final String FLINK_CHECKPOINT = "flink.max-committed-checkpoint-id";

  /** Of one snapshot, whichever sink wrote it; a picked snapshot is not in the copy. */
  private static final Set<String> OF_ONE_SNAPSHOT =
      Set.of(
          SPARK_QUERY,
          SPARK_EPOCH,
          FLINK_JOB,
          FLINK_OPERATOR,
          FLINK_CHECKPOINT,
          SnapshotSummary.STAGED_WAP_ID_PROP,
          SnapshotSummary.PUBLISHED_WAP_ID_PROP,
          SnapshotSummary.SOURCE_SNAPSHOT_ID_PROP,
          SnapshotSummary.REPLACE_PARTITIONS_PROP,
          SnapshotSummary.PROCESSED_MANIFEST_ENTRY_COUNT,
          "spark.app.id");

  /** Iceberg's counts, those of later versions too, and who wrote the snapshot. */
  private static final List<String> PREFIXES =
      List.of(
          "added-",
          "deleted-",
          "removed-",
          "total-",
          "manifests-",
          "changed-partition-",
          "partition-summaries-",
          SnapshotSummary.CHANGED_PARTITION_PREFIX,
          "engine-",
          "app-",
          "trino_");

  private final Map<String, Map<String, String>> queries = new LinkedHashMap<>();
  private final Map<List<String>, Map<String, String>> operators = new LinkedHashMap<>();
  private final Map<String, Map<String, String>> published = new LinkedHashMap<>();
  private final Map<String, String> others = new LinkedHashMap<>();

  private SinkProgress() {}

  /**
   * Repeats what sinks look for in empty snapshots, in one commit: on top of each branch that they
   * have written. Then the earlier snapshots can expire.
   *
   * @param table a table with snapshots
   * @return a time that is later than those of the earlier snapshots, and not than those of the
   *     ones that were made; empty when another commit came between each time that it was tried
   */
  public static OptionalLong repeat(Table table) {
    for (int round = 1; ; round++) {
      Transaction transaction = table.newTransaction();
      Table base = transaction.table(); // as it is now, for the validation
      long latest =
          Streams.stream(base.snapshots()).mapToLong(Snapshot::timestampMillis).max().orElseThrow();
      Map<String, List<Map<String, String>>> found = ofBranches(base);
      try {
        if (!found.isEmpty()) {
          waitUntilAfter(latest);
          found.forEach((branch, summaries) -> repeat(base, branch, summaries));
          transaction.commitTransaction();
        }

        table.refresh();
        return OptionalLong.of(latest + 1);
      } catch (ValidationException e) { // what a sink has told since would be hidden
        if (round == ROUNDS) {
          table.refresh();
          return OptionalLong.empty();
        }
      }
    }
  }

  private static Map<String, List<Map<String, String>>> ofBranches(Table table) {
    Map<String, List<Map<String, String>>> found = new LinkedHashMap<>();
    for (Map.Entry<String, SnapshotRef> ref : table.refs().entrySet()) {
      Snapshot head = table.snapshot(ref.getValue().snapshotId());
      List<Map<String, String>> all =
          of(SnapshotUtil.ancestorsOf(head.snapshotId(), table::snapshot));
      if (ref.getValue().isBranch() && !all.isEmpty()) {
        found.put(ref.getKey(), all);
      }
    }

    return found;
  }

  private static void repeat(Table table, String branch, List<Map<String, String>> summaries) {
    long head = table.snapshot(branch).snapshotId();
    for (int i = 0; i < summaries.size(); i++) {
      AppendFiles empty = table.newFastAppend().toBranch(branch);
      if (i == 0) {
        empty.validateWith(ancestors -> Iterables.getFirst(ancestors, null).snapshotId() == head);
      }

      summaries.get(i).forEach(empty::set);
      empty.commit();
    }
  }

  /** The clock of a writer may be ahead: by a minute at most, or Iceberg refuses all commits. */
  private static void waitUntilAfter(long time) {
    try {
      while (System.currentTimeMillis() <= time) {
        Thread.sleep(10);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      CancelledException.check();
    }
  }

  /**
   * The summaries that snapshots need so that each sink finds what it finds now; the oldest first.
   *
   * @param ancestors a branch's snapshots, the newest first
   */
  static List<Map<String, String>> of(Iterable<Snapshot> ancestors) {
    SinkProgress progress = new SinkProgress();
    for (Snapshot snapshot : ancestors) {
      if (snapshot.summary() != null) {
        progress.add(snapshot);
      }
    }

    List<Map<String, String>> summaries = new ArrayList<>();
    for (Map<?, Map<String, String>> sinks :
        List.of(progress.queries, progress.operators, progress.published)) {
      int i = 0;
      for (Map<String, String> found : sinks.values()) {
        at(summaries, i++).putAll(found);
      }
    }

    if (!progress.others.isEmpty()) {
      at(summaries, 0).putAll(progress.others);
    }

    Collections.reverse(summaries);
    return summaries;
  }

  private static Map<String, String> at(List<Map<String, String>> summaries, int index) {
    if (index == summaries.size()) {
      summaries.add(new HashMap<>());
    }

    return summaries.get(index);
  }

  private void add(Snapshot snapshot) {
    Map<String, String> summary = snapshot.summary();
    if (summary.containsKey(SPARK_QUERY) && summary.containsKey(SPARK_EPOCH)) {
      keep(queries, summary.get(SPARK_QUERY), only(summary, SPARK_QUERY, SPARK_EPOCH));
    }

    if (summary.containsKey(FLINK_JOB) && summary.containsKey(FLINK_CHECKPOINT)) {
      Map<String, String> found = only(summary, FLINK_JOB, FLINK_OPERATOR, FLINK_CHECKPOINT);
      keep(operators, List.of(found.get(FLINK_JOB), found.getOrDefault(FLINK_OPERATOR, "")), found);
    }

    // never as a staged one: it could be picked again then, with all rows of the table
    keepPublished(WapUtil.publishedWapId(snapshot));
    keepPublished(WapUtil.stagedWapId(snapshot));
    summary.forEach(
        (name, value) -> {
          if (isOfWriter(name)) {
            keep(others, name, value);
          }
        });
  }

  private void keepPublished(String wapId) {
    if (wapId != null) {
      keep(published, wapId, Map.of(SnapshotSummary.PUBLISHED_WAP_ID_PROP, wapId));
    }
  }

  private static <K, V> void keep(Map<K, V> found, K key, V value) {
    if (found.size() < MAX) {
      found.putIfAbsent(key, value);
    }
  }

  private static Map<String, String> only(Map<String, String> summary, String... names) {
    Map<String, String> some = new HashMap<>(summary);
    some.keySet().retainAll(Set.of(names));
    return some;
  }

  /**
   * Kafka Connect's offsets have topic and group in their name; of other sinks nothing is known.
   */
  private static boolean isOfWriter(String name) {
    return !OF_ONE_SNAPSHOT.contains(name)
        && !EnvironmentContext.get().containsKey(name)
        && PREFIXES.stream().noneMatch(name::startsWith);
  }
}
