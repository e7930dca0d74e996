package io.icebergcrypto.spark.verify.scan;

import io.icebergcrypto.audit.FileKind;
import io.icebergcrypto.audit.ReachableFile;
import io.icebergcrypto.cleanup.ManifestListCheck;
import java.io.IOException;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.SparkSession;
import scala.Tuple2;

/** Reads manifest lists by a Spark job: on executors, as a delete of a table's files does. */
public record ManifestListJobs(SparkSession spark) implements ManifestListCheck {
  private static final int LISTS_OF_A_TASK = 100;

  @Override
  public boolean takes(int lists) {
    return lists > FileJobs.few(spark);
  }

  @Override
  public Optional<Unreadable> unreadable(Table table, List<Snapshot> snapshots) {
    List<Snapshot> listed =
        snapshots.stream().filter(snapshot -> snapshot.manifestListLocation() != null).toList();
    if (listed.isEmpty()) {
      return Optional.empty();
    }

    TableTree tree = new TableTree(table, listed.stream().map(ManifestListJobs::list).toList());
    try (TableTree.Shared shared = new TableTree.Shared(spark, tree)) {
      TableTree.Source source = shared.there();
      MapPartitionsFunction<Long, Tuple2<Long, String>> read = lists -> failure(source, lists);
      int cores = spark.sparkContext().defaultParallelism();
      int tasks = Math.max(cores, listed.size() / LISTS_OF_A_TASK);
      return spark
          .range(0, listed.size(), 1, Math.min(tasks, listed.size()))
          .as(Encoders.LONG())
          .mapPartitions(read, Encoders.tuple(Encoders.LONG(), Encoders.STRING()))
          .collectAsList()
          .stream()
          .min(Comparator.comparing(Tuple2::_1))
          .map(found -> new Unreadable(listed.get(found._1().intValue()), found._2()));
    }
  }

  private static ReachableFile list(Snapshot snapshot) {
    return new ReachableFile(
        FileKind.MANIFEST_LIST,
        snapshot.manifestListLocation(),
        FileKind.formatOfManifest(snapshot.manifestListLocation()),
        -1L,
        snapshot.keyId(),
        false);
  }

  /** The first of a task's lists that cannot be read, and why; most often none. */
  private static Iterator<Tuple2<Long, String>> failure(
      TableTree.Source tree, Iterator<Long> lists) {
    while (lists.hasNext()) {
      Long list = lists.next();
      try (CloseableIterable<ManifestFile> manifests = tree.value().manifests(list.intValue())) {
        manifests.forEach(manifest -> {});
      } catch (IOException | RuntimeException e) {
        return List.of(new Tuple2<>(list, String.valueOf(e.getMessage()))).iterator();
      }
    }

    return Collections.emptyIterator();
  }
}
