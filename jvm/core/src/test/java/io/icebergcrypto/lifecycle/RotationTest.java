package io.icebergcrypto.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.kms.AuthenticatedWrapping;
import io.icebergcrypto.kms.call.KeyCache;
import io.icebergcrypto.kms.call.KmsMetrics;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.KeystoreDouble;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.Lie;
import io.icebergcrypto.testing.NumberedCalls;
import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import io.icebergcrypto.testing.NumberedKms;
import io.icebergcrypto.testing.PlainKms;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Other keys for a table that exists: nothing is lost, and the old keys are not needed. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST", "HIVE"})
class RotationTest extends LakeFixture {
  private static final long DAY = 86_400_000;

  /** A KMS that fails after some calls. It tells which key wrapped what. */
  public static final class FailsLater extends PlainKms implements AuthenticatedWrapping {
    private static final long serialVersionUID = 1L;
    private static final AtomicInteger CALLS_LEFT = new AtomicInteger();

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String keyId) {
      count();
      byte[] id = keyId.getBytes(StandardCharsets.UTF_8);
      return ByteBuffer.allocate(id.length + key.remaining()).put(id).put(key.duplicate()).flip();
    }

    @Override
    public ByteBuffer unwrapKey(ByteBuffer wrapped, String keyId) {
      count();
      byte[] id = keyId.getBytes(StandardCharsets.UTF_8);
      byte[] all = KeyCache.copyOf(wrapped);
      if (!Arrays.equals(id, Arrays.copyOf(all, id.length))) {
        throw new BadWrappedKeyException("not wrapped by " + keyId, "Use another key.");
      }

      return ByteBuffer.wrap(Arrays.copyOfRange(all, id.length, all.length));
    }

    private static void count() {
      if (CALLS_LEFT.getAndDecrement() <= 0) {
        throw new AccessDeniedException("no more calls", "Wait.");
      }
    }

    @Override
    public boolean authenticatesWrapping(String keyId) {
      return true;
    }
  }

  private TestKeystore keystore() {
    return TestKeystore.existing(folder);
  }

  private MasterKeyRotation rotateMasterKey(String newKeyId) {
    return MasterKeyRotation.run(catalog, T, newKeyId, false);
  }

  private KekRotation rotateKek(boolean rewrap) {
    return KekRotation.run(catalog, T, rewrap, false);
  }

  /** A session that knows no key yet reads every snapshot, and writes. */
  private void assertWhole(long... ids) throws IOException {
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      Table table = fresh.loadTable(T);
      TableProcess.checkReachable(table);
      assertThat(TestLake.ids(table)).containsExactlyInAnyOrder(boxed(ids));
      assertThat(EncryptionKeys.of(fresh, T).keys()).allMatch(key -> key.problem() == null);
    }
  }

  private static Long[] boxed(long... ids) {
    return Arrays.stream(ids).boxed().toArray(Long[]::new);
  }

  private static TableMetadata metadata(Table table) {
    table.refresh();
    return TestLake.metadata(table);
  }

  private static EncryptedKey entry(Table table, String id) {
    return metadata(table).encryptionKeys().stream()
        .filter(key -> key.keyId().equals(id))
        .findFirst()
        .orElseThrow();
  }

  /** The KEK that the current snapshot's manifest list is under. */
  private static String kekOfCurrent(Table table) {
    table.refresh();
    return entry(table, table.currentSnapshot().keyId()).encryptedById();
  }

  @Test
  void aNewVersionOfTheMasterKeyReplacesTheOldOne() throws IOException {
    Table table = TestLake.createTable(catalog, 3);
    table.manageSnapshots().createTag("first", table.history().get(0).snapshotId()).commit();
    Table running = lake.open(Map.of()).loadTable(T);
    assertThat(TestLake.ids(running)).containsExactly(0L, 1L, 2L);
    Map<Path, String> files = TestLake.states(TestLake.path(table.location()).resolve("data"));
    List<Snapshot> snapshots = metadata(table).snapshots();
    keystore().add("k1.v2");

    MasterKeyRotation dry = MasterKeyRotation.run(catalog, T, null, true);
    assertThat(dry.committed()).isFalse();
    assertThat(dry.message())
        .isEqualTo("1 KEK would be wrapped by version 2 of 'k1'; nothing was changed");
    assertThat(metadata(table).metadataFileLocation())
        .isEqualTo(TestLake.metadata(running).metadataFileLocation());

    MasterKeyRotation done = rotateMasterKey(null);
    assertThat(done.toMap())
        .containsEntry("table", "lake.db.t")
        .containsEntry("old_key_id", "k1")
        .containsEntry("new_key_id", "k1")
        .containsEntry("keks", 1)
        .containsEntry("old_versions", "1")
        .containsEntry("new_versions", "2")
        .containsEntry("kms_calls", 3)
        .containsEntry("committed", true);
    assertThat(List.copyOf(done.toMap().keySet()))
        .endsWith("committed", "message", "value_keys", "value_keys_left");
    assertThat(rotateMasterKey("k1").message())
        .isEqualTo(
            "nothing to rotate to: the KMS has no later version of 'k1' than 2, which wraps 1 KEK"
                + " as before. Create one (iceberg-crypto kms rotate-key, or the KMS's own tools),"
                + " and rotate again");
    keystore().delete("k1");
    assertWhole(0, 1, 2);
    assertThat(metadata(table).snapshots()).isEqualTo(snapshots);
    assertThat(TestLake.states(TestLake.path(table.location()).resolve("data"))).isEqualTo(files);
    TestLake.append(running, 3);
    TestLake.append(table, 4);
    assertWhole(0, 1, 2, 3, 4);
  }

  @Test
  void anotherMasterKeyReplacesTheOldOne() throws IOException {
    Table table = TestLake.createTable(catalog, 2);
    Table running = lake.open(Map.of()).loadTable(T);
    Transaction open = running.newTransaction();
    open.newAppend().appendFile(TestLake.write(open.table(), 2)).commit();
    rotateKek(false);
    TestLake.append(table, 3);
    int keks = Kek.all(metadata(table)).size();
    assertThat(keks).isEqualTo(backend == Backend.HIVE ? 1 : 2);
    MasterKeyRotation done = rotateMasterKey("k2");
    assertThat(done.message()).endsWith("wrapped by 'k2' instead of 'k1'; no file was rewritten");
    assertThat(done.keks()).isEqualTo(keks);
    assertThat(done.kmsCalls()).isEqualTo(3 * keks);
    keystore().delete("k1");
    open.commitTransaction();
    TestLake.append(table, 4);
    TestLake.append(running, 5);
    assertThat(metadata(table).properties()).containsEntry("encryption.key-id", "k2");
    assertThat(Kek.all(metadata(table))).allMatch(kek -> "k2".equals(kek.encryptedById()));
    assertWhole(0, 1, 2, 3, 4, 5);
    rotateMasterKey("k2"); // a second time is no harm
    assertWhole(0, 1, 2, 3, 4, 5);
  }

  /** How long the KMS's limit makes a rotation of many tables take follows from this. */
  @Test
  void aTableCostsTheCallsThatTheDocumentsSay() throws IOException {
    TestLake.createTable(catalog, 1);
    int signed = catalog.context().authenticatesMetadata() ? 1 : 0;
    assertThat(calls(fresh -> MasterKeyUse.of(fresh, T))).isEqualTo(signed);
    assertThat(calls(fresh -> MasterKeyRotation.run(fresh, T, null, false))).isEqualTo(3 + signed);
    int kek = backend == Backend.HIVE ? 4 : 2; // where it rewraps, too
    assertThat(calls(fresh -> KekRotation.run(fresh, T, false, false))).isEqualTo(kek + signed);
  }

  private long calls(Consumer<EncryptedCatalog> work) throws IOException {
    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      work.accept(fresh);
      KmsMetrics asked = fresh.context().kms().metrics();
      return asked.wrapCalls() + asked.unwrapCalls();
    }
  }

  private void assertUnchanged(
      ThrowingCallable change, Class<? extends Exception> type, String... words) {
    String before = TestLake.metadata(catalog.loadTable(T)).metadataFileLocation();
    assertThatThrownBy(change)
        .isInstanceOf(type)
        .hasMessageContaining("lake.db.t")
        .message()
        .contains(words);
    assertThat(TestLake.metadata(catalog.loadTable(T)).metadataFileLocation()).isEqualTo(before);
  }

  @Test
  void whatCannotBeRotatedStaysAsItIs() throws IOException {
    TestLake.createTable(catalog, 1);
    rotateKek(false);
    if (backend != Backend.HIVE) {
      assertUnchanged(() -> rotateMasterKey("none"), KeyNotFoundException.class, "none", "k1, k2");
      EncryptedCatalog limited = lake.open(Map.of("encryption.allowed-key-ids", "k1"));
      assertUnchanged(
          () -> MasterKeyRotation.run(limited, T, "k2", false), AccessDeniedException.class, "k2");
    }

    assertUnchanged(() -> rotateMasterKey(" "), InvalidConfigurationException.class, "is empty");
    keystore().delete("k1");
    assertUnchanged(() -> rotateMasterKey(null), KeyNotFoundException.class, "k1");
    EncryptedCatalog fresh = lake.open(Map.of("encryption.metadata-authentication", "off"));
    if (backend == Backend.JDBC || backend == Backend.HADOOP) {
      assertUnchanged(
          () -> KekRotation.run(fresh, T, true, false), KeyNotFoundException.class, "k1");
    }

    catalog.createTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA);
    assertThatThrownBy(
            () ->
                MasterKeyRotation.run(
                    catalog, TableIdentifier.of(TestLake.DB, "plain"), null, false))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.plain", "is not encrypted");
    assertThatThrownBy(
            () -> KekRotation.run(catalog, TableIdentifier.of(TestLake.DB, "no"), true, false))
        .isInstanceOf(NoSuchTableException.class);
    assertThatThrownBy(
            () -> KekRotation.run(catalog, TableIdentifier.of("db", "plain", "files"), true, false))
        .isInstanceOf(NotSupportedException.class);
  }

  @Test
  void aKmsThatFailsHalfWayChangesNothing() throws IOException {
    catalog.close();
    FailsLater.CALLS_LEFT.set(Integer.MAX_VALUE);
    this.catalog =
        new TestLake(backend, folder, Map.of("encryption.kms-impl", FailsLater.class.getName()))
            .open(Map.of());
    TestLake.createTable(catalog, 2);
    rotateKek(false);
    int calls = backend == Backend.HIVE ? 3 : 6;
    for (int left = 0; left < calls; left++) {
      int now = left;
      assertUnchanged(
          () -> {
            FailsLater.CALLS_LEFT.set(now);
            try {
              rotateMasterKey(backend == Backend.HIVE ? null : "k2");
            } finally {
              FailsLater.CALLS_LEFT.set(Integer.MAX_VALUE);
            }
          },
          AccessDeniedException.class,
          "no more calls");
    }

    for (int left : new int[] {0, 1, 2}) {
      assertUnchanged(
          () -> {
            FailsLater.CALLS_LEFT.set(left);
            try {
              rotateKek(true);
            } finally {
              FailsLater.CALLS_LEFT.set(Integer.MAX_VALUE);
            }
          },
          AccessDeniedException.class,
          "no more calls");
    }

    assertThat(rotateMasterKey(backend == Backend.HIVE ? null : "k2").kmsCalls()).isEqualTo(calls);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(0L, 1L);
  }

  @Test
  void aNewKekIsInUseAtOnce() throws IOException {
    Table table = TestLake.createTable(catalog, 2);
    Table running = lake.open(Map.of()).loadTable(T);
    TestLake.ids(running);
    String before = kekOfCurrent(table);
    KekRotation dry = KekRotation.run(catalog, T, false, true);
    assertThat(dry.committed()).isFalse();
    assertThat(kekOfCurrent(table)).isEqualTo(before);

    KekRotation done = rotateKek(false);
    assertThat(done.oldKekId()).isEqualTo(before);
    boolean all = backend == Backend.HIVE; // where stock Iceberg writes, too
    assertThat(done.rewrapped()).isEqualTo(all ? 2 : 0);
    assertThat(done.removedKeks()).isEqualTo(all ? 1 : 0);
    assertThat(done.keptKeks()).isEqualTo(all ? 0 : 1);
    for (Table each : List.of(table, running, lake.open(Map.of()).loadTable(T))) {
      TestLake.append(each, metadata(table).snapshots().size());
      assertThat(kekOfCurrent(table)).isEqualTo(done.newKekId());
    }

    assertWhole(0, 1, 2, 3, 4);
  }

  @Test
  void theOldKekGoesWhenNothingIsUnderIt() throws IOException {
    Table table = TestLake.createTable(catalog, 2);
    table.newAppend().appendFile(TestLake.write(table, 9)).stageOnly().commit();
    Table running = lake.open(Map.of()).loadTable(T);
    Transaction open = running.newTransaction();
    open.newAppend().appendFile(TestLake.write(open.table(), 2)).commit();
    rotateKek(false);
    KekRotation done = rotateKek(true);
    TableMetadata metadata = metadata(table);
    assertThat(done.rewrapped()).isEqualTo(3);
    if (backend != Backend.HIVE) { // a commit that began before, or Flink, may need them
      assertThat(done.keptKeks()).isEqualTo(2);
      assertThat(done.message())
          .isEqualTo(
              "a new KEK is in use; 3 keys of manifest lists and statistics files encrypted with"
                  + " it; 2 older KEKs kept");
    } else {
      assertThat(Kek.all(metadata)).singleElement().matches(k -> k.keyId().equals(done.newKekId()));
    }

    for (Snapshot snapshot : metadata.snapshots()) {
      assertThat(entry(table, snapshot.keyId()).encryptedById()).isEqualTo(done.newKekId());
    }

    open.commitTransaction();
    TestLake.append(table, 3);
    assertThat(kekOfCurrent(table)).isEqualTo(done.newKekId());
    assertWhole(0, 1, 2, 3);
    if (backend == Backend.HIVE) {
      assertThat(Kek.all(metadata(table))).hasSize(1);
    }
  }

  @Test
  @Tag("REST")
  void aCommitThatBeganBeforeMayBringAKekOfTheOldKey() throws IOException {
    assumeTrue(backend == Backend.REST, "it would be a conflict");

    Table table = TestLake.append(createWithKekOf(3), 1);
    Table before = lake.open(Map.of("encryption.kek.max-age-days", "2")).loadTable(T);
    TestLake.ids(before);
    TableOperations ops = ((BaseTable) before).operations();
    TableMetadata base = ops.current();
    rotateMasterKey("k2");
    ops.commit(base, TableMetadata.buildFrom(base).setProperties(Map.of("a", "b")).build());
    assertThat(Kek.all(metadata(table)).stream().map(EncryptedKey::encryptedById))
        .containsExactlyInAnyOrder("k1", "k2");
    TestLake.append(table, 2);
    assertWhole(1, 2);
    assertThat(rotateMasterKey("k2").keks()).isEqualTo(2);
    keystore().delete("k1");
    TestLake.append(table, 3);
    TestLake.append(before, 4);
    assertWhole(1, 2, 3, 4);
  }

  /** A keystore during whose next calls something else happens, one thing each. */
  public static final class Meanwhile extends KeystoreDouble {
    private static final long serialVersionUID = 1L;
    private static final Queue<Runnable> NEXT = new ArrayDeque<>();

    @Override
    public ByteBuffer wrapKey(ByteBuffer key, String wrappingKeyId) {
      Runnable next = NEXT.poll();
      if (next != null) {
        next.run();
      }

      return super.wrapKey(key, wrappingKeyId);
    }
  }

  /** The server takes both commits, and the one that began before brings KEKs of the old key. */
  @Test
  @Tag("REST")
  void ofTwoRotationsNeitherLeavesAKekUnderTheOldKey() throws IOException {
    assumeTrue(backend == Backend.REST, "it would be a conflict");

    Table table = TestLake.createTable(catalog, 1);
    Map<String, String> slow = new HashMap<>(keystore().properties());
    slow.remove("encryption.kms-type");
    slow.put("encryption.kms-impl", Meanwhile.class.getName());
    try (EncryptedCatalog other = new TestLake(backend, folder, slow).open(Map.of())) {
      Meanwhile.NEXT.add(() -> rotateKek(true)); // whose KEK is wrapped when the commit has begun
      Meanwhile.NEXT.add(() -> rotateMasterKey("k2"));
      MasterKeyRotation.run(other, T, null, false);
      assertThat(Meanwhile.NEXT).isEmpty();
      assertThat(Kek.all(metadata(table)).stream().map(EncryptedKey::encryptedById))
          .containsExactly("k2", "k2");

      Meanwhile.NEXT.add(() -> rotateMasterKey("k1"));
      String newest = KekRotation.run(other, T, true, false).newKekId();
      TestLake.append(table, 1);
      assertThat(kekOfCurrent(table)).isEqualTo(newest);
    }

    keystore().delete("k2");
    assertWhole(0, 1);
  }

  private Transaction replacement(long id) {
    Transaction replace = catalog.buildTable(T, TestLake.SCHEMA).replaceTransaction();
    replace.newAppend().appendFile(TestLake.write(replace.table(), id)).commit();
    return replace;
  }

  /** Iceberg commits it with the keys from when it began, over whatever was committed since. */
  @Test
  @Tag("REST")
  void aReplacementThatBeganBeforeUndoesNoRotation() throws IOException {
    Table table = TestLake.createTable(catalog, 1);
    Transaction replace = replacement(5);
    rotateMasterKey("k2");
    assertRotated(replace);
    keystore().delete("k1");
    assertThat(metadata(table).properties()).containsEntry("encryption.key-id", "k2");
    assertWhole(0);
    replacement(1).commitTransaction();
    assertWhole(1);

    replace = replacement(2);
    keystore().add("k2.v2");
    rotateMasterKey(null);
    commitOrRotated(replace);
    keystore().delete("k2");
    assertWhole(backend == Backend.REST ? 2 : 1);

    for (boolean rewrap : new boolean[] {false, true}) {
      replace = replacement(3);
      String newest = rotateKek(rewrap).newKekId();
      commitOrRotated(replace);
      TestLake.append(table, 4);
      assertThat(kekOfCurrent(table)).isEqualTo(newest);
    }

    if (backend == Backend.REST) {
      assertWhole(3, 4);
    } else {
      assertWhole(1, 4);
    }
  }

  /** A server applies the changes of a replacement, and keeps newer keys. */
  private void commitOrRotated(Transaction replace) {
    if (backend == Backend.REST) {
      replace.commitTransaction();
    } else {
      assertRotated(replace);
    }
  }

  private void assertRotated(Transaction replace) {
    assertUnchanged(
        replace::commitTransaction,
        NotSupportedException.class,
        "its keys were rotated after this statement began",
        "Run the statement again");
  }

  @Test
  void aReplacementThatBeganBeforeBringsBackNoPlaintext() {
    String property = "encryption.plaintext-metadata";
    TableOperations ops = ((BaseTable) TestLake.createTable(catalog, 1)).operations();
    ops.commit(
        ops.current(),
        TableMetadata.buildFrom(ops.current()).setProperties(Map.of(property, "old.json")).build());
    if (backend != Backend.REST) { // on which Iceberg refuses it
      Transaction replace = replacement(5);
      TestLake.append(catalog.loadTable(T), 1);
      replace.commitTransaction();
    }

    Transaction late = replacement(6);
    ops.commit(
        ops.refresh(),
        TableMetadata.buildFrom(ops.current()).removeProperties(Set.of(property)).build());
    if (backend == Backend.REST) {
      late.commitTransaction();
    } else {
      assertUnchanged(
          late::commitTransaction,
          NotSupportedException.class,
          "property " + property + " was changed after this statement began");
    }

    assertThat(catalog.loadTable(T).properties()).doesNotContainKey(property);
  }

  @Test
  void aKekThatIsTooOldIsFollowedByANewOneWithTheNextCommit() throws IOException {
    Table table = createWithKekOf(3);
    String old = Kek.newest(metadata(table)).orElseThrow().keyId();
    TestLake.append(lake.open(Map.of("encryption.kek.max-age-days", "4")).loadTable(T), 1);
    assertThat(Kek.all(metadata(table))).hasSize(1);

    Table strict = lake.open(Map.of("encryption.kek.max-age-days", "2")).loadTable(T);
    TestLake.append(strict, 2);
    assertThat(Kek.all(metadata(table))).hasSize(2);
    TestLake.append(table, 3);
    assertThat(kekOfCurrent(table)).isNotEqualTo(old);
    assertThat(Kek.all(metadata(table))).hasSize(2);
    assertWhole(1, 2, 3);
  }

  /**
   * A server's maintenance, or a stock client, removes snapshots and no key. When the last ones
   * under an old KEK are gone, so must be their keys with it: else they would pass for KEKs.
   */
  @Test
  @Tag("REST")
  void keysOfManifestListsGoWithTheirKek() throws IOException {
    assumeTrue(backend == Backend.REST, "else signed, which no stock client does; Hive rewraps");

    for (boolean limited : new boolean[] {false, true}) {
      String newKeyId = limited ? "k2" : null;
      Table table = expiredUnderAnOldKek(UUID.randomUUID().toString()); // as of iceberg-rust
      assertThat(metadata(table).encryptionKeys()).as("control").hasSize(5);
      String newest = Kek.newest(metadata(table)).orElseThrow().keyId();
      try (EncryptedCatalog opened = open(limited)) {
        assertThat(MasterKeyRotation.run(opened, T, newKeyId, false).keks()).isEqualTo(1);
        assertKeysOfOneSnapshot(opened, newest);
      }
    }
  }

  /** As builds before left it: the keys are there, and their KEK is not. */
  @Test
  @Tag("REST")
  void keysWithoutTheirKekAreNoKeks() throws IOException {
    assumeTrue(backend == Backend.REST, "as above");

    for (boolean limited : new boolean[] {false, true}) {
      String newKeyId = limited ? "k2" : null;
      Table table = expiredUnderAnOldKek("q83vASNFZ4mrze8BI0VniQ=="); // as Iceberg names KEKs
      TableOperations stock = ((BaseTable) lake.openStock().loadTable(T)).operations();
      String newest = Kek.newest(metadata(table)).orElseThrow().keyId();
      TableMetadata.Builder damaged = TableMetadata.buildFrom(stock.current());
      Kek.all(stock.current()).stream()
          .map(EncryptedKey::keyId)
          .filter(id -> !id.equals(newest))
          .forEach(damaged::removeEncryptionKey);
      stock.commit(stock.current(), damaged.build());
      assertThat(metadata(table).encryptionKeys()).as("control").hasSize(4);
      try (EncryptedCatalog opened = open(limited)) {
        assertThat(EncryptionKeys.of(opened, T).keys()).allMatch(key -> key.problem() == null);
        assertThat(MasterKeyRotation.run(opened, T, newKeyId, false).keks()).isEqualTo(1);
        assertKeysOfOneSnapshot(opened, newest);
      }
    }
  }

  private EncryptedCatalog open(boolean limited) throws IOException {
    return lake.open(limited ? Map.of("encryption.allowed-key-ids", "k1, k2") : Map.of());
  }

  /** The KEK is the only one, and what it encrypts is the current snapshot's key. */
  private void assertKeysOfOneSnapshot(EncryptedCatalog opened, String kekId) throws IOException {
    Table table = opened.loadTable(T);
    assertThat(metadata(table).encryptionKeys().stream().map(EncryptedKey::keyId))
        .containsExactlyInAnyOrder(kekId, table.currentSnapshot().keyId());
    MasterKeyRotation.run(opened, T, null, false); // as often as anyone likes
    assertWhole(0, 1, 2);
  }

  /**
   * Two snapshots under a KEK that was replaced 31 days ago, expired by stock Iceberg, and one
   * under the KEK that replaced it.
   */
  private Table expiredUnderAnOldKek(String kekId) throws IOException {
    catalog.dropTable(T, false);
    Table table = age(TestLake.createTable(catalog, "t", Map.of()), kekId, 40);
    TestLake.append(table, 0);
    TestLake.append(table, 1);
    age(catalog.loadTable(T), rotateKek(false).newKekId(), 31);
    TestLake.append(catalog.loadTable(T), 2);
    TestLake.expire(lake.openStock().loadTable(T));
    return catalog.loadTable(T);
  }

  /** An empty table, whose KEK was made some days ago. */
  private Table createWithKekOf(int days) {
    return age(TestLake.createTable(catalog, "t", Map.of()), "kek", days);
  }

  /** Its newest KEK, which must encrypt nothing yet, gets this id, and was made some days ago. */
  private static Table age(Table table, String kekId, int days) {
    TableOperations ops = ((BaseTable) table).operations();
    ops.refresh();
    EncryptedKey kek = Kek.newest(ops.current()).orElseThrow();
    long made = System.currentTimeMillis() - days * DAY;
    EncryptedKey older =
        new BaseEncryptedKey(
            kekId, kek.encryptedKeyMetadata(), "k1", Map.of(Kek.TIMESTAMP, String.valueOf(made)));
    ops.commit(
        ops.current(),
        TableMetadata.buildFrom(ops.current())
            .removeEncryptionKey(kek.keyId())
            .addEncryptionKey(older)
            .build());
    return table;
  }

  @Test
  @Tag("REST")
  void rotationsAndWritersAtOnceLoseNothing() throws Exception {
    TestLake.createTable(catalog, 1);
    ExecutorService threads = Executors.newFixedThreadPool(4);
    List<Future<?>> all = new ArrayList<>();
    all.add(
        threads.submit(
            () -> {
              Table table = lake.open(Map.of()).loadTable(T);
              for (int i = 1; i < 6; i++) {
                TestLake.append(table, i);
              }
              return null;
            }));
    AtomicBoolean ended = new AtomicBoolean();
    Future<Integer> reader =
        threads.submit(
            () -> {
              Table table = lake.open(Map.of()).loadTable(T);
              int reads = 0;
              for (; !ended.get(); reads++) {
                assertThat(TestLake.ids(table)).contains(0L);
                table.refresh();
              }
              return reads;
            });
    for (int i = 0; i < 2; i++) {
      String keyId = backend == Backend.HIVE ? null : "k2";
      all.add(
          threads.submit(
              () -> {
                EncryptedCatalog own = lake.open(Map.of());
                KekRotation.run(own, T, true, false);
                return MasterKeyRotation.run(own, T, keyId, false);
              }));
    }

    for (Future<?> each : all) {
      each.get();
    }

    ended.set(true);
    assertThat(reader.get()).isPositive();
    threads.shutdown();
    if (backend != Backend.HIVE) {
      keystore().delete("k1");
    }

    assertWhole(0, 1, 2, 3, 4, 5);
  }

  /** Create, append, and rotate_kek, in which the KMS returns another key once. */
  @Test
  void noKeyIsEncryptedWithAWrongAnswer() throws IOException {
    Map<String, String> properties = new HashMap<>(keystore().properties());
    properties.remove("encryption.kms-type");
    properties.put("encryption.kms-impl", NumberedKms.class.getName());
    TestLake asked = new TestLake(backend, folder, properties);
    TestLake.append(TestLake.createTable(catalog, 1), 9);
    NumberedKms.liesWith(Lie.ANOTHER_KEY);
    String hit = "";
    for (int call = 0; hit != null; call++) {
      try (EncryptedCatalog session = asked.open(Map.of())) {
        NumberedCalls.begin("/", Kind.OF_KMS, Fault.LIED, call);
        KekRotation.run(session, T, true, false);
      } catch (BadWrappedKeyException e) {
        assertThat(e).hasMessageContaining("lake.db.t");
      } finally {
        hit = NumberedCalls.end();
      }

      try (EncryptedCatalog fresh = lake.open(Map.of())) {
        assertThat(TestLake.ids(fresh.loadTable(T))).as("call %d", call).containsExactly(0L, 9L);
      }
    }
  }
}
