package io.icebergcrypto.lifecycle.encrypt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.Stub;
import io.icebergcrypto.testing.TestLake;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.exceptions.DuplicateWAPCommitException;
import org.apache.iceberg.util.SnapshotUtil;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** What each sink finds in a table's copy, by looking as it does in Iceberg's source. */
@ParameterizedClass
@EnumSource(names = "HADOOP")
class SinkProgressTest extends LakeFixture {
  private static final String OFFSETS = "kafka.connect.offsets.control.";

  private Table plain;

  @BeforeEach
  void create() {
    this.plain = catalog.buildTable(T, TestLake.SCHEMA).create();
  }

  private void commit(String branch, String... summary) {
    AppendFiles append = plain.newFastAppend().toBranch(branch);
    for (int i = 0; i < summary.length; i += 2) {
      append.set(summary[i], summary[i + 1]);
    }

    append.commit();
  }

  private void spark(String branch, String query, long epoch) {
    String id = "spark.sql.streaming.queryId";
    commit(branch, id, query, "spark.sql.streaming.epochId", "" + epoch, "spark.app.id", "app-1");
  }

  private void flink(String branch, String job, String operator, long checkpoint) {
    List<String> summary =
        new ArrayList<>(
            List.of("flink.job-id", job, "flink.max-committed-checkpoint-id", "" + checkpoint));
    if (operator != null) {
      summary.addAll(List.of("flink.operator-id", operator));
    }

    commit(branch, summary.toArray(String[]::new));
  }

  /** The copy, of which the rows do not matter here. */
  private Table copied() {
    TableMetadata base = TestLake.metadata(plain);
    Map<Version, List<LoggedGroup>> groups = new LinkedHashMap<>();
    Version.distinct(Version.byRef("lake.db.t", base))
        .forEach(version -> groups.put(version, List.of()));
    return EncryptedSnapshots.make(
        catalog,
        "lake.db.t",
        ((BaseTable) plain).operations(),
        base,
        PlaintextForm.of(base),
        groups);
  }

  private static List<Snapshot> ancestors(Table table, String branch) {
    List<Snapshot> all = new ArrayList<>();
    SnapshotUtil.ancestorsOf(table.snapshot(branch).snapshotId(), table::snapshot)
        .forEach(all::add);
    return all;
  }

  /** SparkWrite.findLastCommittedEpochId, which knows main only. */
  private static Long epoch(Table table, String branch, String query) {
    return ancestors(table, branch).stream()
        .map(Snapshot::summary)
        .filter(summary -> query.equals(summary.get("spark.sql.streaming.queryId")))
        .map(summary -> Long.valueOf(summary.get("spark.sql.streaming.epochId")))
        .findFirst()
        .orElse(null);
  }

  /** SinkUtil.getMaxCommittedCheckpointId. */
  private static long checkpoint(Table table, String branch, String job, String operator) {
    for (Snapshot snapshot : ancestors(table, branch)) {
      Map<String, String> summary = snapshot.summary();
      String found = summary.get("flink.operator-id");
      String value = summary.get("flink.max-committed-checkpoint-id");
      if (job.equals(summary.get("flink.job-id"))
          && (found == null || found.equals(operator))
          && value != null) {
        return Long.parseLong(value);
      }
    }

    return -1;
  }

  /** Coordinator.lastCommittedOffsets. */
  private static String offsets(Table table, String branch, String group) {
    return ancestors(table, branch).stream()
        .map(snapshot -> snapshot.summary().get(OFFSETS + group))
        .filter(Objects::nonNull)
        .findFirst()
        .orElse(null);
  }

  @Test
  void eachSinkFindsTheNewestOfItsOwn() {
    spark("main", "one", 7);
    spark("main", "two", 3);
    flink("main", "job", "sink", 11);
    flink("main", "job", null, 12); // as older ones wrote
    spark("main", "one", 8);
    flink("main", "job", "other", 13);
    flink("main", "later", "sink", 1);
    commit("main", OFFSETS + "a", "{\"0\":5}", "kafka.connect.commit-id", "c1");
    commit("main", OFFSETS + "b", "{\"0\":9}", "kafka.connect.commit-id", "c2");
    commit("main", OFFSETS + "a", "{\"0\":6}", "kafka.connect.vtts", "1700", "batch", "17");
    commit("main");

    Table copy = copied();
    for (Table table : List.of(plain, copy)) {
      assertThat(epoch(table, "main", "one")).isEqualTo(8);
      assertThat(epoch(table, "main", "two")).isEqualTo(3);
      assertThat(epoch(table, "main", "three")).isNull();
      assertThat(checkpoint(table, "main", "job", "sink")).isEqualTo(12);
      assertThat(checkpoint(table, "main", "job", "other")).isEqualTo(13);
      assertThat(checkpoint(table, "main", "later", "sink")).isEqualTo(1);
      assertThat(checkpoint(table, "main", "later", "other")).isEqualTo(-1);
      assertThat(offsets(table, "main", "a")).isEqualTo("{\"0\":6}");
      assertThat(offsets(table, "main", "b")).isEqualTo("{\"0\":9}");
      assertThat(offsets(table, "main", "c")).isNull();
    }

    assertThat(ancestors(copy, "main")).hasSize(4); // as many as there are operators of Flink
    assertThat(copy.currentSnapshot().summary())
        .containsEntry("kafka.connect.commit-id", "c2")
        .containsEntry("kafka.connect.vtts", "1700")
        .containsEntry("batch", "17")
        .doesNotContainKey("spark.app.id");
  }

  private static void expireUpTo(Table table, long time) {
    table.expireSnapshots().expireOlderThan(time).retainLast(1).commit();
  }

  @Test
  void whatIsRepeatedOutlivesTheRest() {
    spark("main", "one", 7);
    flink("main", "job", "sink", 11);
    spark("main", "two", 3);
    commit("main", OFFSETS + "a", "{\"0\":5}");
    plain.manageSnapshots().createBranch("side").commit();
    spark("main", "one", 8);
    commit("main");
    long later = SinkProgress.repeat(plain).orElseThrow();
    List<Snapshot> made = ancestors(plain, "main").subList(0, 2);
    assertThat(made).allMatch(snapshot -> snapshot.timestampMillis() >= later);
    spark("main", "three", 1); // before they expire
    expireUpTo(plain, later);
    assertThat(ancestors(plain, "main")).hasSize(3);
    assertThat(epoch(plain, "main", "one")).isEqualTo(8);
    assertThat(epoch(plain, "main", "two")).isEqualTo(3);
    assertThat(epoch(plain, "side", "one")).isEqualTo(7);
    for (String branch : List.of("main", "side")) {
      assertThat(checkpoint(plain, branch, "job", "sink")).isEqualTo(11);
      assertThat(offsets(plain, branch, "a")).isEqualTo("{\"0\":5}");
    }
  }

  @Test
  void aSinkThatCommitsMeanwhileIsNotHidden() {
    flink("main", "job", "sink", 1);
    commit("main");
    Table beside = catalog.loadTable(T);
    AtomicInteger calls = new AtomicInteger();
    OptionalLong later =
        SinkProgress.repeat(
            Stub.of(
                Table.class,
                (proxy, method, given) -> {
                  Object made = method.invoke(beside, given);
                  if (method.getName().equals("newTransaction") && calls.getAndIncrement() == 0) {
                    flink("main", "job", "sink", 2);
                  }

                  return made;
                }));
    assertThat(calls).hasValue(2);
    expireUpTo(beside, later.orElseThrow());
    assertThat(checkpoint(beside, "main", "job", "sink")).isEqualTo(2);
  }

  /** The newest snapshot does not stay the newest. */
  @Test
  void whatTheNewestSnapshotTellsIsRepeatedToo() {
    commit("main");
    flink("main", "job", "sink", 1);
    long later = SinkProgress.repeat(plain).orElseThrow();
    commit("main");
    expireUpTo(plain, later);
    assertThat(checkpoint(plain, "main", "job", "sink")).isEqualTo(1);
  }

  @Test
  void aBranchHasItsOwn() {
    flink("main", "job", "sink", 1);
    plain.manageSnapshots().createBranch("side").createBranch("same").commit();
    plain.manageSnapshots().createTag("first", plain.currentSnapshot().snapshotId()).commit();
    flink("main", "job", "sink", 2);
    spark("side", "query", 5);
    spark("side", "another", 6);

    Table copy = copied();
    for (Table table : List.of(plain, copy)) {
      assertThat(checkpoint(table, "main", "job", "sink")).isEqualTo(2);
      assertThat(checkpoint(table, "side", "job", "sink")).isEqualTo(1);
      assertThat(checkpoint(table, "same", "job", "sink")).isEqualTo(1);
      assertThat(epoch(table, "side", "query")).isEqualTo(5);
      assertThat(epoch(table, "side", "another")).isEqualTo(6);
      assertThat(epoch(table, "main", "query")).isNull();
    }

    assertThat(copy.refs().keySet()).isEqualTo(plain.refs().keySet());
    assertThat(copy.snapshots()).hasSize(4); // side has two
  }

  @Test
  void aTableWithoutMain() {
    flink("side", "job", "sink", 1);
    assertThat(plain.currentSnapshot()).isNull();
    Table copy = copied();
    assertThat(checkpoint(copy, "side", "job", "sink")).isEqualTo(1);
    assertThat(copy.currentSnapshot()).isNull();
  }

  @Test
  void whatWasPublishedIsNotPublishedAgain() {
    plain.newFastAppend().commit();
    plain.newFastAppend().set("wap.id", "ahead").stageOnly().commit();
    plain.newFastAppend().set("wap.id", "picked").stageOnly().commit();
    for (String id : List.of("ahead", "picked")) { // the first is fast-forwarded
      plain.manageSnapshots().cherrypick(staged(plain, id)).commit();
    }

    plain.newFastAppend().set("wap.id", "unpublished").stageOnly().commit();
    Table copy = copied();
    assertThat(copy.snapshots()).noneMatch(snapshot -> snapshot.summary().containsKey("wap.id"));
    for (Table table : List.of(plain, copy)) {
      for (String id : List.of("ahead", "picked")) {
        table.newFastAppend().set("wap.id", id).stageOnly().commit();
        long again = staged(table, id);
        table.newFastAppend().commit();
        assertThatThrownBy(() -> table.manageSnapshots().cherrypick(again).commit())
            .isInstanceOf(DuplicateWAPCommitException.class)
            .hasMessageContaining(id);
      }

      table.newFastAppend().set("wap.id", "unpublished").stageOnly().commit();
      long first = staged(table, "unpublished");
      assertThatCode(() -> table.manageSnapshots().cherrypick(first).commit())
          .doesNotThrowAnyException();
    }
  }

  /** The newest snapshot that was staged with a WAP id. */
  private static long staged(Table table, String wapId) {
    long found = -1;
    for (Snapshot snapshot : table.snapshots()) {
      if (wapId.equals(snapshot.summary().get("wap.id"))) {
        found = snapshot.snapshotId();
      }
    }

    return found;
  }

  @Test
  void theNewestAreKept() {
    for (int i = 0; i <= SinkProgress.MAX; i++) {
      flink("main", "job-" + i, "sink", 1);
    }

    Table copy = copied();
    assertThat(checkpoint(copy, "main", "job-0", "sink")).isEqualTo(-1);
    assertThat(checkpoint(copy, "main", "job-1", "sink")).isEqualTo(1);
    assertThat(ancestors(copy, "main")).hasSize(SinkProgress.MAX);
    assertThat(copy.currentSnapshot().summary()).containsEntry("flink.job-id", "job-100");
  }
}
