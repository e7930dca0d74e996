package io.icebergcrypto.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.CommitFailedException;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Keys come with snapshots and go with them, and none goes that anyone needs. */
@ParameterizedClass
@EnumSource(names = {"HIVE", "REST", "JDBC", "HADOOP"})
class KeyRetentionTest extends LakeFixture {
  private static final int COMMITS = NIGHTLY ? 60 : 20;

  private static void appendNothing(Table table, int times) {
    for (int i = 0; i < times; i++) {
      table.newFastAppend().commit();
    }
  }

  private Table inAnotherSession() throws IOException {
    return lake.open(Map.of()).loadTable(T);
  }

  private static Set<String> keys(Table table) {
    table.refresh();
    return TestLake.metadata(table).encryptionKeys().stream()
        .map(EncryptedKey::keyId)
        .collect(Collectors.toSet());
  }

  private static ExpireSnapshots toOne(ExpireSnapshots expire) {
    return expire.expireOlderThan(Long.MAX_VALUE).retainLast(1);
  }

  /** All is there, and all that is there is reached. */
  private void assertWhole(Table table, long... ids) throws IOException {
    Table fresh = inAnotherSession();
    TableProcess.checkReachable(fresh);
    assertThat(TestLake.ids(fresh)).containsExactlyInAnyOrder(boxed(ids));
    assertThat(keys(fresh)).as("a key for each snapshot, and a KEK").hasSize(1 + size(fresh));
    table.refresh();
    assertThat(TestLake.ids(table)).containsExactlyInAnyOrder(boxed(ids));
  }

  private static int size(Table table) {
    return ((List<?>) TestLake.metadata(table).snapshots()).size();
  }

  private static Long[] boxed(long... ids) {
    return Arrays.stream(ids).boxed().toArray(Long[]::new);
  }

  @Test
  void keysGoWithTheirSnapshotsAndDoNotComeBack() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    appendNothing(table, COMMITS - 1);
    Table old = inAnotherSession();
    assertThat(keys(old)).hasSize(COMMITS + 1);
    FileIO takenBefore = table.io();
    String expired = old.snapshots().iterator().next().keyId();
    toOne(table.expireSnapshots()).commit();
    assertThat(keys(table)).hasSize(2).doesNotContain(expired);

    TestLake.append(table, 1); // the same table object
    TestLake.append(old, 2); // a session that knows all the old keys
    TestLake.append(inAnotherSession(), 3);
    assertThat(keys(table)).doesNotContain(expired);
    assertThat(table.currentSnapshot().allManifests(takenBefore)).isNotEmpty();
    assertWhole(table, 0, 1, 2, 3);
  }

  /** Spark's expire_snapshots commits first, and then reads what it expired. */
  @Test
  void aSessionThatDoesNothingButExpireReadsWhatItExpired() throws IOException {
    Snapshot expired = TestLake.createTable(catalog, 1).currentSnapshot();
    Table fresh = inAnotherSession();
    appendNothing(inAnotherSession(), 1);
    fresh.refresh();
    toOne(fresh.expireSnapshots()).cleanupLevel(ExpireSnapshots.CleanupLevel.NONE).commit();
    assertThat(keys(fresh)).hasSize(2).doesNotContain(expired.keyId());
    assertThat(expired.allManifests(fresh.io())).isNotEmpty();
  }

  @Test
  void aTransactionThatExpiresTakesKeysAndFilesAlongOnceItIsCommitted() throws IOException {
    Table table = TestLake.createTable(catalog, 3);
    table.newDelete().deleteFromRowFilter(Expressions.equal("id", 0)).commit();
    List<Path> before = TestLake.files(table);
    Transaction transaction = table.newTransaction();
    toOne(transaction.expireSnapshots()).commit();
    transaction.newAppend().appendFile(TestLake.write(transaction.table(), 3)).commit();
    assertThat(before).allMatch(Files::exists);
    transaction.commitTransaction();
    assertThat(TestLake.files(table))
        .as("what is left is what the table reaches")
        .containsExactlyInAnyOrderElementsOf(TestLake.reachable(table));
    assertWhole(table, 1, 2, 3);
    assertThat(keys(table)).hasSize(3);
  }

  @Test
  void aTransactionThatIsAppliedAgainCleansUpToo() throws IOException {
    Table table = TestLake.createTable(catalog, 3);
    Transaction transaction = table.newTransaction();
    toOne(transaction.expireSnapshots()).commit();
    TestLake.append(inAnotherSession(), 3);
    transaction.commitTransaction();
    table.refresh();
    assertThat(TestLake.files(table))
        .containsExactlyInAnyOrderElementsOf(TestLake.reachable(table));
    assertWhole(table, 0, 1, 2, 3);
  }

  @Test
  void aTransactionThatFailsOrIsLeftDeletesNothing() throws IOException {
    Table table = TestLake.createTable(catalog, 3);
    List<Path> before = TestLake.files(table);
    toOne(table.newTransaction().expireSnapshots()).commit(); // and never committed
    assertThat(before).allMatch(Files::exists);

    Transaction fails = table.newTransaction();
    toOne(fails.expireSnapshots()).commit();
    fails.updateSchema().addColumn("one", Types.LongType.get()).commit();
    inAnotherSession().updateSchema().addColumn("another", Types.LongType.get()).commit();
    assertThatThrownBy(fails::commitTransaction).isInstanceOf(CommitFailedException.class);
    assertThat(before).allMatch(Files::exists);
    assertWhole(table, 0, 1, 2);
    assertThat(keys(table)).hasSize(4);
  }

  @Test
  void aTransactionMayLeaveTheFiles() throws IOException {
    Table table = TestLake.createTable(catalog, 3);
    List<Path> before = TestLake.files(table);
    Transaction transaction = table.newTransaction();
    toOne(transaction.expireSnapshots()).cleanupLevel(ExpireSnapshots.CleanupLevel.NONE).commit();
    transaction.commitTransaction();
    assertThat(before).allMatch(Files::exists);
    assertThat(keys(table)).hasSize(2);
  }

  /** Iceberg's own expiry, without the clean-up of ours, is reached by a transaction's table. */
  @Test
  void theTableOfATransactionDeletesNothingBeforeTheCommit() {
    assumeTrue(NIGHTLY, "left to the night: Iceberg tries to delete for 15 seconds");
    Table table = TestLake.createTable(catalog, 3);
    List<Path> before = TestLake.files(table);
    Transaction transaction = table.newTransaction();
    toOne(transaction.table().expireSnapshots()).commit();
    assertThat(before).allMatch(Files::exists);
  }

  @Test
  void whatBranchesTagsAndStagedSnapshotsNeedStays() throws IOException {
    Table table = TestLake.createTable(catalog, 4);
    List<Snapshot> all = TestLake.metadata(table).snapshots();
    table.manageSnapshots().createTag("tagged", all.get(0).snapshotId()).commit();
    table.manageSnapshots().createBranch("branched", all.get(1).snapshotId()).commit();
    DataFile file = TestLake.write(table, 4);
    long expireBefore = System.currentTimeMillis() + 1;
    table.newAppend().appendFile(file).stageOnly().commit();
    Snapshot staged =
        TestLake.metadata(table).snapshots().stream()
            .filter(snapshot -> !all.contains(snapshot))
            .findFirst()
            .orElseThrow();
    while (System.currentTimeMillis() <= expireBefore) {
      Thread.onSpinWait();
    }
    table
        .expireSnapshots()
        .expireOlderThan(Math.min(expireBefore, staged.timestampMillis()))
        .retainLast(1)
        .commit();
    TableMetadata metadata = TestLake.metadata(inAnotherSession());
    assertThat(metadata.snapshots().stream().map(Snapshot::snapshotId))
        .containsExactlyInAnyOrder(
            all.get(0).snapshotId(),
            all.get(1).snapshotId(),
            all.get(3).snapshotId(),
            staged.snapshotId());
    assertWhole(table, 0, 1, 2, 3);
    Table another = inAnotherSession();
    another.manageSnapshots().cherrypick(staged.snapshotId()).commit();
    assertWhole(another, 0, 1, 2, 3, 4);
  }

  @Test
  void anExpiryHarmsNoOpenTransaction() throws IOException {
    Table table = TestLake.createTable(catalog, 5);
    Table other = inAnotherSession();
    Transaction open = other.newTransaction();
    open.newAppend().appendFile(TestLake.write(open.table(), 5)).commit();
    open.newAppend().appendFile(TestLake.write(open.table(), 6)).stageOnly().commit();
    toOne(table.expireSnapshots()).commit();
    TestLake.append(table, 7);
    toOne(table.expireSnapshots()).commit();
    open.newAppend().appendFile(TestLake.write(open.table(), 8)).commit();
    open.commitTransaction();
    assertWhole(table, 0, 1, 2, 3, 4, 5, 7, 8);
    assertThat(keys(table)).hasSize(1 + 4); // the last two and the one staged, and the kept one
  }

  /** A branch of its own is not a conflict on REST: the server takes both changes as they are. */
  @Test
  void anExpiryHarmsNoCommitToAnotherBranch() throws IOException {
    Table table = TestLake.createTable(catalog, 3);
    table.manageSnapshots().createBranch("audit").commit();
    Table other = inAnotherSession();
    Transaction open = other.newTransaction();
    open.newFastAppend().appendFile(TestLake.write(open.table(), 3)).toBranch("audit").commit();
    toOne(table.expireSnapshots()).commit();
    open.commitTransaction();
    Table fresh = inAnotherSession();
    TableProcess.checkReachable(fresh);
    assertThat(fresh.refs()).containsOnlyKeys("main", "audit");
    assertThat(fresh.snapshot("audit").allManifests(fresh.io())).isNotEmpty();
  }

  @Test
  void rewrittenManifestsAreEncrypted() throws IOException {
    Table table = TestLake.createTable(catalog, 4);
    Set<String> before = manifests(table);
    table.rewriteManifests().clusterBy(file -> "one").commit();
    assertThat(manifests(table)).hasSize(1).doesNotContainAnyElementsOf(before);
    assertWhole(table, 0, 1, 2, 3);
  }

  private static Set<String> manifests(Table table) {
    return table.currentSnapshot().allManifests(table.io()).stream()
        .map(ManifestFile::path)
        .collect(Collectors.toSet());
  }

  /** As a REST catalog can; the others take no notice. */
  @Test
  @Tag("REST")
  void aSessionThatLoadsSnapshotsLateDropsNoKeyOfThem() throws IOException {
    TestLake.createTable(catalog, 3);
    for (int i = 3; i < 6; i++) {
      TestLake.append(lake.open(Map.of("snapshot-loading-mode", "refs")).loadTable(T), i);
    }
    Table table = lake.open(Map.of("snapshot-loading-mode", "refs")).loadTable(T);
    table.updateProperties().set("a", "b").commit();
    assertWhole(table, 0, 1, 2, 3, 4, 5);
    assertThat(keys(inAnotherSession())).hasSize(7);
    toOne(table.expireSnapshots()).commit();
    assertThat(keys(inAnotherSession())).hasSize(2);
  }

  @Test
  void aFileIOTakenBeforeSixHundredKeysCameReadsOn() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    FileIO io = table.io();
    Table other = inAnotherSession();
    TableOperations ops = ((HasTableOperations) other).operations();
    TableMetadata base = ops.refresh();
    EncryptedKey key = base.encryptionKeys().get(base.encryptionKeys().size() - 1);
    TableMetadata.Builder grown = TableMetadata.buildFrom(base);
    for (int i = 0; i < 600; i++) {
      grown.addEncryptionKey(
          like(key, "another-" + i, key.encryptedById(), Map.of("owner", "someone")));
    }
    ops.commit(base, grown.build());
    TestLake.append(other, 1);
    assertThat(keys(table)).hasSizeGreaterThan(600);
    assertThat(table.currentSnapshot().allManifests(io)).hasSize(2);
  }

  @Test
  void aFileIOTakenBeforeAChangeOfTheKeyLengthReadsOn() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    FileIO io = table.io();
    table.updateProperties().set("encryption.data-key-length", "32").commit();
    TestLake.append(table, 1);
    TestLake.append(inAnotherSession(), 2);
    table.refresh();
    assertThat(table.currentSnapshot().allManifests(io)).isNotEmpty();
    assertThat(TestLake.ids(table)).containsExactly(0L, 1L, 2L);
  }

  /** What clients without this catalog, and earlier versions of it, have left. */
  @Test
  void deadKeysAreDroppedAndLiveKeksStay() throws IOException {
    Table table = TestLake.createTable(catalog, 2);
    TableMetadata metadata = TestLake.metadata(table);
    EncryptedKey kek =
        metadata.encryptionKeys().stream()
            .filter(key -> "k1".equals(key.encryptedById()))
            .findFirst()
            .orElseThrow();
    EncryptedKey list =
        metadata.encryptionKeys().stream()
            .filter(key -> key.keyId().equals(metadata.currentSnapshot().keyId()))
            .findFirst()
            .orElseThrow();
    long now = System.currentTimeMillis();
    long day = 86_400_000;
    TableMetadata grown =
        TableMetadata.buildFrom(metadata)
            .addEncryptionKey(like(list, "dead-list", kek.keyId(), Map.of()))
            .addEncryptionKey(
                like(list, "dead-stats", kek.keyId(), Map.of("statistics-path", "file:/gone")))
            .addEncryptionKey(like(list, "other-use", kek.keyId(), Map.of("owner", "someone")))
            .addEncryptionKey(kekOf(kek, "live", now - 700 * day))
            .addEncryptionKey(kekOf(kek, "replaced", now - 731 * day))
            .addEncryptionKey(kekOf(kek, "used", now - 800 * day))
            .addEncryptionKey(like(list, "other-use-2", "used", Map.of("owner", "someone")))
            .addEncryptionKey(like(kek, "no-time", "k1", Map.of()))
            .addEncryptionKey(like(kek, "bad-time", "k1", Map.of("KEY_TIMESTAMP", "then")))
            .build();
    TableMetadata pruned = KeyRetention.pruned(grown, KeyRetentionTest::notAsked, now);
    assertThat(ids(pruned))
        .containsAll(ids(metadata))
        .contains("other-use", "other-use-2", "used", "live", "no-time", "bad-time")
        .doesNotContain("dead-list", "dead-stats", "replaced");

    // the table's own KEK is new: when it is there for 30 days, no commit takes an older one
    assertThat(ids(KeyRetention.pruned(grown, KeyRetentionTest::notAsked, now + 29 * day)))
        .contains("live");
    assertThat(ids(KeyRetention.pruned(grown, KeyRetentionTest::notAsked, now + 31 * day)))
        .contains(kek.keyId(), "used", "no-time")
        .doesNotContain("live");

    // the newest stays, however old: without a KEK the table would not be known as encrypted
    TableMetadata empty =
        TableMetadata.buildFrom(metadata).removeSnapshots(metadata.snapshots()).build();
    assertThat(ids(KeyRetention.pruned(empty, KeyRetentionTest::notAsked, now + 2000 * day)))
        .containsExactly(kek.keyId());
  }

  /** Newer KEKs do not lengthen the time, and those that no commit takes do not begin it. */
  @Test
  void aKekGoesThirtyDaysAfterTheNextOne() {
    Table table = TestLake.createTable(catalog, 1);
    TableMetadata metadata = TestLake.metadata(table);
    EncryptedKey kek = Kek.newest(metadata).orElseThrow();
    long now = Kek.madeAt(kek); // 20 days after the one before
    long day = 86_400_000;
    TableMetadata grown =
        TableMetadata.buildFrom(metadata)
            .addEncryptionKey(kekOf(kek, "first", now - 50 * day))
            .addEncryptionKey(kekOf(kek, "second", now - 20 * day))
            .build();
    assertThat(ids(KeyRetention.pruned(grown, KeyRetentionTest::notAsked, now + 10 * day)))
        .contains(kek.keyId(), "first", "second");
    assertThat(ids(KeyRetention.pruned(grown, KeyRetentionTest::notAsked, now + 11 * day)))
        .contains(kek.keyId(), "second")
        .doesNotContain("first");

    TableMetadata two =
        TableMetadata.buildFrom(metadata)
            .addEncryptionKey(kekOf(kek, "old", now - 759 * day))
            .build();
    assertThat(ids(KeyRetention.pruned(two, KeyRetentionTest::notAsked, now))).contains("old");
    assertThat(ids(KeyRetention.pruned(two, KeyRetentionTest::notAsked, now + 2 * day)))
        .as("no commit takes one of this age")
        .doesNotContain("old");

    Map<String, String> later = Map.of("KEY_TIMESTAMP", String.valueOf(now + 1));
    TableMetadata ofAnother =
        TableMetadata.buildFrom(metadata).addEncryptionKey(like(kek, "k2's", "k2", later)).build();
    TableMetadata unused =
        TableMetadata.buildFrom(ofAnother).removeSnapshots(ofAnother.snapshots()).build();
    assertThat(ids(KeyRetention.pruned(unused, KeyRetentionTest::notAsked, now + 31 * day)))
        .contains(kek.keyId());
  }

  private static TableEncryptionManager notAsked() {
    throw new AssertionError("the manager was asked for");
  }

  private static List<String> ids(TableMetadata metadata) {
    return metadata.encryptionKeys().stream().map(EncryptedKey::keyId).toList();
  }

  private static EncryptedKey kekOf(EncryptedKey kek, String id, long made) {
    return like(kek, id, kek.encryptedById(), Map.of("KEY_TIMESTAMP", String.valueOf(made)));
  }

  private static EncryptedKey like(
      EncryptedKey key, String id, String encryptedById, Map<String, String> properties) {
    return new BaseEncryptedKey(id, key.encryptedKeyMetadata(), encryptedById, properties);
  }
}
