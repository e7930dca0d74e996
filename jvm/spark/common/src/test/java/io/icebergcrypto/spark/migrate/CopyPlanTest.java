package io.icebergcrypto.spark.migrate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.lifecycle.encrypt.LoggedGroup;
import io.icebergcrypto.lifecycle.encrypt.Unit;
import io.icebergcrypto.lifecycle.encrypt.UnitCopy;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.ExpireSnapshots.CleanupLevel;
import org.apache.iceberg.FileMetadata;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Plans for tables whose data files are names only. */
class CopyPlanTest {
  private static final Schema SCHEMA =
      new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));

  private static final String NAMES = "schema.name-mapping.default";
  private static final String OF_ID =
      PartitionSpecParser.toJson(PartitionSpec.builderFor(SCHEMA).identity("id").build());

  @TempDir private Path folder;
  private BaseTable table;
  private final List<LoggedGroup> copied = new ArrayList<>();
  private final List<String> names = new ArrayList<>(); // of the files that were copied

  @BeforeEach
  void createTable() {
    this.table =
        (BaseTable)
            new HadoopTables()
                .create(
                    SCHEMA,
                    PartitionSpec.unpartitioned(),
                    Map.of("format-version", "2"),
                    folder + "/t");
    append("a", "b");
  }

  @Test
  void onlyFilesThatWereAddedAreCopied() {
    append("c");
    table.manageSnapshots().createBranch("work").commit();
    append("d"); // so that branches differ
    CopyPlan plan = copiedPlan();
    assertThat(names).containsExactlyInAnyOrder("a", "b", "c", "d");
    for (String file : List.of("e", "f")) {
      names.clear();
      append(file, file + "-too");
      assertThat(follows(plan)).isTrue();
      assertThat(plan.filesLeft()).isEqualTo(2);
      copyAll(plan);
      assertThat(names).containsExactlyInAnyOrder(file, file + "-too");
      assertSameAsNew(plan);
    }

    names.clear();
    table.newAppend().appendFile(file("w")).toBranch("work").commit();
    assertThat(follows(plan)).isTrue();
    copyAll(plan);
    assertThat(names).containsExactly("w");
    assertSameAsNew(plan);
  }

  @Test
  void aFileThatIsListedAgainIsCopiedAgain() {
    append("a");
    CopyPlan plan = plan();
    plan.copy(groups(1), this::copy);
    plan.countLeft();
    assertThat(plan.filesLeft()).as("in a group of its own").isZero();
    names.clear();
    append("a");
    assertThat(follows(plan)).isTrue();
    copyAll(plan);
    assertThat(names).containsExactly("a");
    assertSameAsNew(plan);
  }

  static Stream<Arguments> otherChanges() {
    return Stream.of(
        change("nothing", table -> {}),
        change("two appends to two branches", CopyPlanTest::appendToBoth),
        change("delete", table -> table.newDelete().deleteFile(file("a")).commit()),
        change(
            "overwrite",
            table -> table.newOverwrite().addFile(file("n")).deleteFile(file("a")).commit()),
        change(
            "rewrite",
            table -> table.newRewrite().deleteFile(file("a")).addFile(file("n")).commit()),
        change("rows deleted", table -> table.newRowDelta().addDeletes(deletes()).commit()),
        change(
            "rows changed",
            table -> table.newRowDelta().addRows(file("n")).addDeletes(deletes()).commit()),
        change(
            "manifests rewritten", table -> table.rewriteManifests().clusterBy(file -> 1).commit()),
        change("append, then deletes", CopyPlanTest::appendThenDelete),
        change(
            "rollback",
            table ->
                table.manageSnapshots().rollbackTo(table.currentSnapshot().parentId()).commit()),
        change(
            "tag",
            table ->
                table
                    .manageSnapshots()
                    .createTag("t", table.currentSnapshot().snapshotId())
                    .commit()),
        change(
            "append, and names of columns",
            table -> {
              table.updateProperties().set(NAMES, "[]").commit();
              table.newAppend().appendFile(file("n")).commit();
            }),
        change(
            "append, and a partition spec",
            table -> {
              table.updateSpec().addField("id").commit();
              table.newAppend().appendFile(file("n")).commit();
            }),
        change(
            "column", table -> table.updateSchema().addColumn("x", Types.LongType.get()).commit()),
        change("upgrade", table -> table.updateProperties().set("format-version", "3").commit()));
  }

  private static Arguments change(String what, Consumer<BaseTable> change) {
    return Arguments.of(what, change);
  }

  private static void appendToBoth(BaseTable table) {
    table.newAppend().appendFile(file("n")).commit();
    table.newAppend().appendFile(file("m")).toBranch("other").commit();
  }

  private static void appendThenDelete(BaseTable table) {
    table.newAppend().appendFile(file("n")).commit();
    table.newDelete().deleteFile(file("n")).commit();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("otherChanges")
  void anythingElseNeedsAnotherPlan(String what, Consumer<BaseTable> change) {
    table.manageSnapshots().createBranch("other").commit();
    append("c");
    CopyPlan plan = copiedPlan();
    change.accept(table);
    assertThat(follows(plan)).isFalse();
  }

  @Test
  void rowsThatWereReplacedBetweenAppendsNeedAnotherPlan() {
    CopyPlan plan = copiedPlan();
    append("n");
    table.newOverwrite().addFile(file("x")).deleteFile(file("n")).commit();
    table.newAppend().appendFile(file("y")).commit(); // drops the manifest of what was deleted
    assertThat(follows(plan)).isFalse();
  }

  @Test
  void aFileThatEarlierDeletesApplyToNeedsAnotherPlan() throws IOException {
    table.newRowDelta().addDeletes(deletes()).commit();
    CopyPlan plan = copiedPlan();
    OutputFile path = table.io().newOutputFile(folder + "/added.avro");
    ManifestWriter<DataFile> writer =
        ManifestFiles.write(2, PartitionSpec.unpartitioned(), path, null);
    try (writer) {
      writer.add(file("old"), 1L);
    }

    table.newFastAppend().appendManifest(writer.toManifestFile()).commit();
    assertThat(follows(plan)).isFalse();
  }

  @Test
  void filesThatAnotherBranchHasNeedAnotherPlan() {
    table.manageSnapshots().createBranch("work").commit();
    table.newAppend().appendFile(file("c")).toBranch("work").commit();
    table.newAppend().appendFile(file("d")).toBranch("work").commit();
    long middle = table.snapshot(table.snapshot("work").parentId()).snapshotId();
    table.manageSnapshots().createTag("t", middle).commit();
    CopyPlan plan = copiedPlan();
    table.manageSnapshots().fastForwardBranch("main", "work").commit();
    append("e");
    assertThat(follows(plan)).isFalse();
    assertThat(plan().filesLeft()).isEqualTo(1);
  }

  @Test
  void rowIdsThatFilesGotNeedAnotherPlan() {
    table.updateProperties().set("format-version", "3").commit();
    CopyPlan plan = copiedPlan();
    append("c"); // by which the files before get theirs
    assertThat(follows(plan)).isFalse();
    CopyPlan next = copiedPlan();
    append("d");
    assertThat(follows(next)).isTrue();
  }

  @Test
  void aTagOfAnotherSchemaNeedsAnotherPlan() {
    table.updateSchema().addColumn("x", Types.LongType.get()).commit();
    table.manageSnapshots().createBranch("b", table.currentSnapshot().snapshotId()).commit();
    append("c");
    CopyPlan plan = copiedPlan();
    long at = table.snapshot("b").snapshotId();
    table.manageSnapshots().removeBranch("b").createTag("b", at).commit();
    assertThat(follows(plan)).isFalse();
  }

  @Test
  void anExpiredSnapshotNeedsAnotherPlan() {
    CopyPlan plan = copiedPlan();
    append("c");
    table
        .expireSnapshots()
        .expireOlderThan(Long.MAX_VALUE)
        .retainLast(1)
        .cleanupLevel(CleanupLevel.NONE)
        .commit();
    assertThat(follows(plan)).isFalse();
  }

  @Test
  void copiesThatWereReadByOtherNamesAreMadeAgain() {
    copiedPlan();
    assertThat(plan().filesLeft()).isZero();
    table.updateProperties().set(NAMES, "[]").commit();
    assertThat(plan().filesLeft()).isEqualTo(2);
    table.updateProperties().remove(NAMES).commit();
    assertThat(plan().filesLeft()).isZero();
  }

  @Test
  void copiesOfASpecThatIsAnotherNowAreMadeAgain() {
    copiedPlan();
    for (String spec : List.of("{\"spec-id\":1,\"fields\":[]}", OF_ID)) {
      copied.replaceAll(
          group ->
              new LoggedGroup(
                  group.schemaId(), 1, spec, group.nameMapping(), group.copies(), List.of()));
      assertThat(plan().filesLeft()).as(spec).isEqualTo(2);
    }
  }

  @Test
  void aPlanThatIsNotDoneIsNotFollowed() {
    CopyPlan plan = plan();
    append("c");
    assertThat(follows(plan)).isFalse();
  }

  @Test
  void groupsAreCopiedSideBySide() {
    append("c", "d");
    CyclicBarrier two = new CyclicBarrier(2);
    CopyPlan plan = plan();
    plan.copy(
        groups(1),
        group -> {
          meet(two);

          return copy(group);
        });
    assertThat(names).hasSize(4);
    assertSameAsNew(plan);
  }

  @Test
  void whatWasCopiedBesideAFailureIsKept() {
    CyclicBarrier two = new CyclicBarrier(2);
    CopyPlan plan = plan();
    assertThatThrownBy(
            () ->
                plan.copy(
                    groups(1),
                    group -> {
                      meet(two);

                      if (name(group.files().get(0)).equals("a")) {
                        throw new IllegalStateException("unreadable");
                      }

                      return copy(group);
                    }))
        .hasMessage("unreadable");
    assertThat(names).containsExactly("b");
    assertThat(plan().filesLeft()).isEqualTo(1);
  }

  @Test
  void aGroupBeginsAfterThePauseThatIsAskedFor() {
    CyclicBarrier two = new CyclicBarrier(2);
    AtomicInteger asked = new AtomicInteger();
    CopyPlan.Copier copier =
        new CopyPlan.Copier() {
          @Override
          public long pause(CopyPlan.Group group) {
            if (asked.getAndIncrement() == 0) {
              return 0;
            }

            meet(two);
            return TimeUnit.HOURS.toNanos(1); // which a failure ends
          }

          @Override
          public LoggedGroup copy(CopyPlan.Group group) {
            names.add(name(group.files().get(0)));
            meet(two);
            throw new IllegalStateException("unreadable");
          }
        };
    assertThatThrownBy(() -> plan().copy(groups(1), copier)).hasMessage("unreadable");
    assertThat(names).hasSize(1);
  }

  @Test
  void manyTasksCompareTheRowsOfManySmallFiles() throws IOException {
    append(IntStream.range(0, 1000).mapToObj(String::valueOf).toArray(String[]::new));
    List<FileScanTask> files = new ArrayList<>();
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      tasks.forEach(files::add);
    }

    assertThat(RewriteTables.partitions(files, RowSums.SPLIT_SIZE, RowSums.OPEN_COST))
        .hasSizeGreaterThan(16);
  }

  private static void meet(CyclicBarrier two) {
    try {
      two.await(20, TimeUnit.SECONDS);
    } catch (Exception e) {
      throw new AssertionError("one is alone", e);
    }
  }

  // ---- plans

  private CopyPlan plan() {
    return new CopyPlan(SourceViews.ofPlaintext(table), "t", now(), copied);
  }

  private CopyPlan copiedPlan() {
    CopyPlan plan = plan();
    copyAll(plan);
    return plan;
  }

  private boolean follows(CopyPlan plan) {
    return plan.follows(now());
  }

  private TableMetadata now() {
    return table.operations().refresh();
  }

  private void copyAll(CopyPlan plan) {
    plan.copy(groups(1000), this::copy);
    plan.countLeft();
    assertThat(plan.filesLeft()).isZero();
  }

  private static GroupSize groups(long files) {
    return new GroupSize(() -> 1, 0, files, Long.MAX_VALUE, 1, 2);
  }

  private synchronized LoggedGroup copy(CopyPlan.Group files) {
    files.files().forEach(file -> names.add(name(file)));
    List<UnitCopy> copies = new ArrayList<>();
    for (Unit unit : files.units()) {
      copies.add(new UnitCopy(unit, copies.size(), 1, 1));
    }

    LoggedGroup group =
        new LoggedGroup(
            table.schema().schemaId(),
            1,
            PartitionSpecParser.toJson(PartitionSpec.unpartitioned()),
            LoggedGroup.nameMapping(table.operations().current()),
            copies,
            List.of());
    copied.add(group);
    return group;
  }

  /** A new plan with what was copied has the same copies in each version, and nothing to copy. */
  private void assertSameAsNew(CopyPlan plan) {
    CopyPlan other = plan();
    assertThat(other.filesLeft()).isZero();
    assertThat(plan.files()).isEqualTo(other.files());
    assertThat(plan.bytes()).isEqualTo(other.bytes());
    assertThat(plan.groups().keySet()).isEqualTo(other.groups().keySet());
    plan.groups()
        .forEach(
            (version, groups) ->
                assertThat(units(groups))
                    .containsExactlyInAnyOrderElementsOf(units(other.groups().get(version))));
  }

  private static List<Unit> units(List<LoggedGroup> groups) {
    return groups.stream().flatMap(g -> g.copies().stream()).map(UnitCopy::unit).toList();
  }

  // ---- files

  private void append(String... names) {
    var append = table.newFastAppend();
    Stream.of(names).forEach(name -> append.appendFile(file(name)));
    append.commit();
  }

  private static String name(FileScanTask task) {
    return task.file().location().replaceAll(".*/|\\.parquet", "");
  }

  private static DataFile file(String name) {
    return DataFiles.builder(PartitionSpec.unpartitioned())
        .withPath("/nowhere/" + name + ".parquet")
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build();
  }

  private static DeleteFile deletes() {
    return FileMetadata.deleteFileBuilder(PartitionSpec.unpartitioned())
        .ofEqualityDeletes(1)
        .withPath("/nowhere/deletes.parquet")
        .withFileSizeInBytes(10)
        .withRecordCount(1)
        .build();
  }
}
