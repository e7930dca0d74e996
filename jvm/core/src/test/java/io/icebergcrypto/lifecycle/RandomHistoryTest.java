package io.icebergcrypto.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.ValidationException;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinReader;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Random histories, with dead keys as stock clients leave them: after each pruning, a session that
 * knows no key reads the rows of every snapshot and every statistics file, and no key is left that
 * nothing needs.
 *
 * <p>{@code -Diceberg.crypto.histories=N} sets their number, which {@code make soak} does. The
 * seeds go up from that of {@link Fuzz#SEED}: with the seed of a failure as {@code
 * ICEBERG_CRYPTO_SEED}, the first history fails.
 */
@ParameterizedClass
@EnumSource(names = {"HIVE", "REST"}) // signed metadata of other catalogs has no dead keys
class RandomHistoryTest extends LakeFixture {
  private static final int HISTORIES = Integer.getInteger("iceberg.crypto.histories", 1);
  private static final int STEPS = 30;

  @Override
  protected Map<String, String> properties() {
    return Map.of("encryption.statistics", "encrypt");
  }

  @Test
  void pruningTakesNoKeyThatIsNeeded() throws IOException {
    for (int seed = Fuzz.SEED; seed < Fuzz.SEED + HISTORIES; seed++) {
      List<String> steps = new ArrayList<>();
      try {
        new History(new Random(seed * 0x9E3779B97F4A7C15L), steps).run();
      } catch (Exception | AssertionError e) {
        throw new AssertionError(backend + ", seed " + seed + ", after " + steps + ": " + e, e);
      }

      catalog.dropTable(T, true);
    }
  }

  /** One table's. */
  private final class History {
    private final Random random;
    private final List<String> steps;
    private final Table table = TestLake.createTable(catalog, "t", Map.of());

    /** What a snapshot had when it was made. */
    private final Map<Long, Set<Long>> rows = new HashMap<>();

    private long nextId;
    private int pruned;

    History(Random random, List<String> steps) {
      this.random = random;
      this.steps = steps;
    }

    void run() throws IOException {
      append(table, SnapshotRef.MAIN_BRANCH);
      learn();
      for (int i = 0; i < STEPS; i++) {
        table.refresh();
        step(random.nextInt(12));
        learn();
      }

      leaveDeadKeys();
      prune();
      assertThat(pruned).as("dead keys that went").isPositive();
    }

    private void step(int kind) throws IOException {
      steps.add(
          switch (kind) {
            case 0 -> append(table, oneOf(branches()));
            case 1 -> deleteRow();
            case 2 -> addRef();
            case 3 -> dropRef();
            case 4 -> expire();
            case 5 -> rollBack();
            case 6 -> stage();
            case 7 -> cherryPick();
            case 8 -> rotate();
            case 9 -> addStatistics();
            case 10 -> leaveDeadKeys();
            default -> prune();
          });
    }

    private <T> T oneOf(List<T> all) {
      return all.get(random.nextInt(all.size()));
    }

    private List<String> branches() {
      return table.refs().entrySet().stream()
          .filter(ref -> ref.getValue().isBranch())
          .map(Map.Entry::getKey)
          .sorted()
          .toList();
    }

    private List<Snapshot> snapshots() {
      return TestLake.metadata(table).snapshots();
    }

    private String append(Table in, String branch) {
      DataFile file = TestLake.write(in, nextId++);
      in.newFastAppend().appendFile(file).toBranch(branch).commit();
      return "append to " + branch;
    }

    private String deleteRow() {
      long id = random.nextLong(nextId);
      table.newDelete().deleteFromRowFilter(Expressions.equal("id", id)).commit();
      return "delete " + id;
    }

    private String addRef() {
      long snapshot = oneOf(snapshots()).snapshotId();
      String name = "r" + nextId++;
      if (random.nextBoolean()) {
        table.manageSnapshots().createBranch(name, snapshot).commit();
      } else {
        table.manageSnapshots().createTag(name, snapshot).commit();
      }

      return "ref " + name;
    }

    private String dropRef() {
      List<String> names =
          table.refs().keySet().stream()
              .filter(name -> !name.equals(SnapshotRef.MAIN_BRANCH))
              .sorted()
              .toList();
      if (names.isEmpty()) {
        return "drop no ref";
      }

      String name = oneOf(names);
      if (table.refs().get(name).isBranch()) {
        table.manageSnapshots().removeBranch(name).commit();
      } else {
        table.manageSnapshots().removeTag(name).commit();
      }

      return "drop " + name;
    }

    private String expire() throws IOException {
      boolean stock = backend == Backend.HIVE && random.nextBoolean();
      int kept = 1 + random.nextInt(3);
      (stock ? stock() : table)
          .expireSnapshots()
          .expireOlderThan(Long.MAX_VALUE)
          .retainLast(kept)
          .cleanupLevel(
              stock ? ExpireSnapshots.CleanupLevel.NONE : ExpireSnapshots.CleanupLevel.ALL)
          .commit();
      return (stock ? "stock expire to " : "expire to ") + kept;
    }

    private String rollBack() {
      List<Long> ancestors = new ArrayList<>();
      Snapshot at = table.currentSnapshot();
      while (at != null) {
        ancestors.add(at.snapshotId());
        at = at.parentId() == null ? null : table.snapshot(at.parentId());
      }

      long to = oneOf(ancestors);
      table.manageSnapshots().rollbackTo(to).commit();
      return "roll back " + ancestors.indexOf(to);
    }

    private String stage() {
      table.newAppend().appendFile(TestLake.write(table, nextId++)).stageOnly().commit();
      return "stage";
    }

    /** A snapshot that is on no branch, if there is one that was not published. */
    private String cherryPick() {
      Set<Long> inHistory = new HashSet<>();
      for (SnapshotRef ref : table.refs().values()) {
        Snapshot at = table.snapshot(ref.snapshotId());
        while (at != null && inHistory.add(at.snapshotId())) {
          at = at.parentId() == null ? null : table.snapshot(at.parentId());
        }
      }

      List<Long> others =
          snapshots().stream()
              .filter(snapshot -> "append".equals(snapshot.operation()))
              .map(Snapshot::snapshotId)
              .filter(id -> !inHistory.contains(id))
              .toList();
      if (others.isEmpty()) {
        return "pick nothing";
      }

      try {
        table.manageSnapshots().cherrypick(oneOf(others)).commit();
        return "pick";
      } catch (ValidationException e) { // it was picked before
        return "pick again";
      }
    }

    private String rotate() {
      boolean rewrap = random.nextBoolean();
      KekRotation.run(catalog, T, rewrap, false);
      if (random.nextInt(3) == 0) {
        MasterKeyRotation.run(catalog, T, null, false);
      }

      return rewrap ? "rewrap" : "rotate";
    }

    private String addStatistics() throws IOException {
      long of = oneOf(snapshots()).snapshotId();
      table.updateStatistics().setStatistics(TestLake.statistics(table, of, "of " + of)).commit();
      return "statistics";
    }

    private Table stock() throws IOException {
      return lake.openStockWithKeys().loadTable(T);
    }

    /** On Hive as stock Iceberg leaves them; on REST as a client might. */
    private String leaveDeadKeys() throws IOException {
      if (backend == Backend.HIVE) {
        Table stock = stock();
        append(stock, SnapshotRef.MAIN_BRANCH);
        append(stock, SnapshotRef.MAIN_BRANCH);
        stock.refresh();
        learn(stock);
        TestLake.expire(stock);
        return "stock appends";
      }

      Catalog plain = lake.openStock();
      TableOperations ops = ((HasTableOperations) plain.loadTable(T)).operations();
      TableMetadata base = ops.current();
      EncryptedKey key = base.encryptionKeys().get(base.encryptionKeys().size() - 1);
      ops.commit(
          base,
          TableMetadata.buildFrom(base)
              .addEncryptionKey(
                  new BaseEncryptedKey(
                      "dead-" + nextId++,
                      key.encryptedKeyMetadata(),
                      Kek.newest(base).orElseThrow().keyId(),
                      Map.of()))
              .build());
      return "dead keys";
    }

    private void learn() {
      table.refresh();
      learn(table);
    }

    private void learn(Table seen) {
      for (Snapshot snapshot : TestLake.metadata(seen).snapshots()) {
        rows.computeIfAbsent(snapshot.snapshotId(), id -> rowsOf(seen, id));
      }
    }

    private Set<Long> rowsOf(Table read, long snapshot) {
      Set<Long> ids = new TreeSet<>();
      try (CloseableIterable<Record> records =
          IcebergGenerics.read(read).useSnapshot(snapshot).build()) {
        records.forEach(row -> ids.add((Long) row.getField("id")));
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }

      return ids;
    }

    private String prune() throws IOException {
      KeyPruning done = KeyPruning.run(catalog, T, false);
      this.pruned += done.removed();
      try (EncryptedCatalog fresh = lake.open(Map.of())) {
        Table read = fresh.loadTable(T);
        TableMetadata metadata = TestLake.metadata(read);
        for (Snapshot snapshot : metadata.snapshots()) {
          assertThat(rowsOf(read, snapshot.snapshotId()))
              .isEqualTo(rows.get(snapshot.snapshotId()));
        }

        for (StatisticsFile file : read.statisticsFiles()) {
          try (PuffinReader reader = Puffin.read(read.io().newInputFile(file.path())).build()) {
            ByteBuffer sketch =
                reader.readAll(reader.fileMetadata().blobs()).iterator().next().second();
            assertThat(StandardCharsets.UTF_8.decode(sketch).toString())
                .isEqualTo("of " + file.snapshotId());
          }
        }

        assertOnlyNeeded(metadata);
      }

      return "prune " + done.removed();
    }

    /** Counted in another way than the product does. */
    private void assertOnlyNeeded(TableMetadata metadata) {
      Set<String> lists = new HashSet<>();
      metadata.snapshots().forEach(snapshot -> lists.add(snapshot.keyId()));
      Set<String> paths = new HashSet<>();
      metadata.statisticsFiles().forEach(file -> paths.add(file.path()));
      for (EncryptedKey key : metadata.encryptionKeys()) {
        String path = TableEncryptionManager.statisticsPath(key);
        boolean kek = key.properties().containsKey(Kek.TIMESTAMP);
        assertThat(kek || lists.contains(key.keyId()) || paths.contains(path)).isTrue();
      }
    }
  }
}
