package io.icebergcrypto.cleanup;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.io.TableFileIO;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.lifecycle.KekRotation;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.DownKms;
import io.icebergcrypto.testing.FailingKms;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.Stub;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import io.icebergcrypto.testing.XorKms;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.TableOperations;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.inmemory.InMemoryInputFile;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.SeekableInputStream;
import org.apache.iceberg.io.SupportsPrefixOperations;
import org.assertj.core.api.Assertions;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tables whose key is lost, and what is near them. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP"}) // all four: tests/catalog/test_lost_key.py
class LostKeyPurgeTest extends LakeFixture {
  private Table create(String name, Map<String, String> more) {
    Table table = TestLake.append(TestLake.createTable(catalog, name, more), 1, 2);
    return table;
  }

  private EncryptedCatalog withoutKey() throws IOException {
    TestKeystore.existing(folder).write(256, "another");
    return lake.open(Map.of());
  }

  /** The catalog with these properties in the place of those of the keystore. */
  private EncryptedCatalog withKms(Map<String, String> kms) throws IOException {
    return new TestLake(backend, folder, kms).open(Map.of());
  }

  private static List<Path> below(Path place) throws IOException {
    if (!Files.exists(place)) {
      return List.of();
    }

    try (Stream<Path> all = Files.walk(place)) {
      return all.filter(file -> Files.isRegularFile(file) && !file.toString().endsWith(".crc"))
          .toList();
    }
  }

  @Test
  void itsLocationGoesAndNothingElse() throws IOException {
    Path data = folder.resolve("elsewhere/data");
    Table table = create("t", Map.of("write.data.path", data.toUri().toString()));
    Table neighbour = create("t2", Map.of());
    List<Path> kept = below(TestLake.path(neighbour.location()));
    Path beside = Files.writeString(folder.resolve("elsewhere/data2"), "kept");
    List<Path> own = below(TestLake.path(table.location()));
    List<Path> shared = below(data);
    assertThat(shared).isNotEmpty();

    PurgeResult purged = withoutKey().context().purgeWithoutKey(T, true);
    assertThat(purged.files()).isEqualTo(own.size());
    assertThat(purged.bytes()).isPositive();
    assertThat(own).noneMatch(Files::exists);
    assertThat(shared).as("other tables may write there").allMatch(Files::exists);
    assertThat(purged.left()).containsExactly(data.toUri().toString().replaceFirst("/$", ""));
    assertThat(catalog.tableExists(T)).isFalse();
    assertThat(kept).allMatch(Files::exists);
    assertThat(beside).exists();
  }

  @Test
  void aKeyThatWasMadeAgainIsALostKey() throws IOException {
    Table table = create("t", Map.of());
    TestKeystore.existing(folder).write(256, "k1");
    EncryptedCatalog withoutKey = lake.open(Map.of());
    assertThatThrownBy(() -> withoutKey.dropTable(T, true))
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("CALL lake.system.purge_without_key(table => 'lake.db.t')");
    assertThatThrownBy(() -> withoutKey.context().purgeWithoutKey(T, false))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "does not unwrap", "k1")
        .hasMessageContainingAll(table.location(), "use the keystore", "confirm => true");
    assertThat(catalog.tableExists(T)).isTrue();
    assertThat(withoutKey.context().purgeWithoutKey(T, true).files()).isPositive();
    assertThat(below(TestLake.path(table.location()))).isEmpty();
  }

  /** One version of the master key is gone: what the other wrapped can be read. */
  @ParameterizedTest
  @ValueSource(strings = {"k1", "k1.v2"})
  @Tag("HADOOP")
  void aTableThatCanBeReadInPartIsRefused(String gone) throws IOException {
    Table table = create("t", Map.of());
    long first = table.currentSnapshot().snapshotId();
    TestKeystore.existing(folder).add("k1.v2");
    KekRotation.run(catalog, T, false, false);
    table.refresh();
    long second = TestLake.append(table, 3).currentSnapshot().snapshotId();
    TestKeystore.existing(folder).delete(gone);
    try (EncryptedCatalog inPart = lake.open(Map.of())) {
      assertRefused(inPart, table, "" + first, "" + second, "1 of its snapshots", gone);
      assertRefused(inPart, table, "can be read, and 1 of its", "restore the version");
    }
  }

  /** The next setting may find the key. */
  @Test
  void aSettingIsNoLostKey() throws IOException {
    Table table = create("t", Map.of());
    Map<String, String> kms = Map.of("encryption.kms-impl", TooFewTries.class.getName());
    try (EncryptedCatalog set = withKms(kms)) {
      assertThatThrownBy(() -> set.context().purgeWithoutKey(T, true))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.t", "Raise it", "Nothing was dropped")
          .message()
          .doesNotContain("has no encryption.kms-type", "purge_without_key");
    }

    assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
  }

  /** As Azure's, which tries no more versions of a key than it may. */
  public static final class TooFewTries extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new InvalidConfigurationException("1 of 3 versions was tried", "Raise it.");
    }
  }

  /** An old copy of a keystore, or a KMS that was restored from an old backup. */
  @Test
  void aVersionThatIsMissingIsNoLostKey() throws IOException {
    Table table = create("t", Map.of());
    Map<String, String> kms = Map.of("encryption.kms-impl", OldCopy.class.getName());
    try (EncryptedCatalog old = withKms(kms)) {
      assertThatThrownBy(() -> old.context().purgeWithoutKey(T, true))
          .isInstanceOf(KeyNotFoundException.class)
          .hasMessageContainingAll(
              "lake.db.t", "no version 2", "othing was dropped", "has no encryption.kms-type");
    }

    assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
  }

  /** A KMS that has the key, and not the version. */
  public static final class OldCopy extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new KeyNotFoundException("it has no version 2", "Restore it.").ofKeyIf(false);
    }
  }

  /** Create, and a KMS that answers wrongly: the key is there all the same. */
  @Test
  void aKmsThatAnswersWithWrongBytesHasLostNoKey() throws IOException {
    Map<String, String> wrongKms =
        Map.of(
            "encryption.kms-impl",
            XorKms.class.getName(),
            "encryption.kms.authenticated-wrapping",
            "true");
    byte[] wrong = XorKms.WRONG_KEY;
    try (EncryptedCatalog own = withKms(wrongKms);
        EncryptedCatalog asked = withKms(wrongKms)) {
      Table table = TestLake.append(TestLake.createTable(own, "t", Map.of()), 1, 2);
      XorKms.answer(wrong, wrong, wrong, wrong, wrong, wrong, wrong, wrong);
      assertThatThrownBy(() -> asked.context().purgeWithoutKey(T, true))
          .isInstanceOf(BadWrappedKeyException.class)
          .hasMessageContaining("catalog that has no encryption.kms-type");
      assertThatThrownBy(() -> asked.dropTable(T, true))
          .isInstanceOf(BadWrappedKeyException.class)
          .hasMessageNotContaining("purge_without_key");
      XorKms.answer();
      assertThat(TestLake.ids(asked.loadTable(T))).containsExactly(1L, 2L);
    }
  }

  @Test
  void withoutAnyKmsItWorksToo() throws IOException {
    Table table = create("t", Map.of());
    try (EncryptedCatalog noKms = withKms(Map.of())) {
      assertThat(noKms.context().purgeWithoutKey(T, true).files()).isPositive();
    }

    assertThat(below(TestLake.path(table.location()))).isEmpty();
  }

  @Test
  void aTableWithAKeyOrWithoutEncryptionIsRefused() {
    Table table = create("t", Map.of());
    assertRefused(catalog, table, "its key is available", "DROP TABLE ... PURGE");
    Table plain =
        catalog.buildTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA).create();
    assertThatThrownBy(
            () -> catalog.context().purgeWithoutKey(TableIdentifier.of(TestLake.DB, "plain"), true))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.plain", "it is not encrypted", "DROP TABLE ... PURGE");
    assertThat(plain.location()).isNotNull();
  }

  @Test
  void aTableThatLostKeyIdAndKeysIsRefused() throws IOException {
    Table table = create("t", Map.of());
    TableOperations stock = ((BaseTable) lake.openStock().loadTable(T)).operations();
    TableMetadata current = stock.current();
    TableMetadata.Builder stripped =
        TableMetadata.buildFrom(current).removeProperties(Set.of("encryption.key-id"));
    current.encryptionKeys().forEach(key -> stripped.removeEncryptionKey(key.keyId()));
    stock.commit(current, stripped.build());
    for (String authentication : List.of("require", "off")) {
      try (EncryptedCatalog withoutKey =
          lake.open(Map.of("encryption.metadata-authentication", authentication))) {
        assertThatThrownBy(() -> withoutKey.context().purgeWithoutKey(T, true))
            .as("the key of its snapshot tells")
            .isInstanceOf(TamperedException.class)
            .hasMessageContainingAll("lake.db.t", "encryption.key-id");
      }
    }

    assertThat(catalog.tableExists(T)).isTrue();
    assertThat(TestLake.files(table)).isNotEmpty();
  }

  @Test
  void anotherTableInItsFolderIsRefused() throws IOException {
    Table table = create("t", Map.of());
    TableMetadata foreign =
        TableMetadata.buildFrom(
                TableMetadata.newTableMetadata(
                    TestLake.SCHEMA, table.spec(), table.location() + "/inner", Map.of()))
            .discardChanges()
            .build();
    Path inner = TestLake.path(table.location()).resolve("inner/metadata/00000-x.metadata.json");
    Files.createDirectories(inner.getParent());
    Files.writeString(inner, TableMetadataParser.toJson(foreign));
    EncryptedCatalog withoutKey = withoutKey();
    assertRefused(withoutKey, table, "inner/metadata/00000-x.metadata.json", "without PURGE");
    Files.writeString(inner, "{\"view-uuid\": \"another view\"}");
    assertRefused(withoutKey, table, "inner/metadata/00000-x.metadata.json", "without PURGE");
    Files.delete(inner);
    withoutKey.context().purgeWithoutKey(T, true);
    assertThat(below(TestLake.path(table.location()))).isEmpty();
  }

  /** It was moved to another catalog; then the KMS that this one has was given up. */
  @Test
  void aTableThatGoesOnInAnotherCatalogIsRefused() throws IOException {
    Table table = create("t", Map.of());
    Path elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
    TestKeystore own = TestKeystore.existing(elsewhere);
    for (String file : List.of("keys.p12", "password")) {
      Files.copy(folder.resolve(file), elsewhere.resolve(file));
    }
    try (EncryptedCatalog other =
        new TestLake(Backend.JDBC, elsewhere, own.properties()).open(Map.of())) {
      other.createNamespace(TestLake.DB);
      Table moved = other.registerTable(T, TestLake.metadata(table).metadataFileLocation());
      TestLake.append(moved, 3);
      String newest = TestLake.path(TestLake.metadata(moved).metadataFileLocation()).toString();
      assertRefused(
          withoutKey(), table, newest, "newer metadata of this table", "in other catalogs");
      assertThat(TestLake.ids(other.loadTable(T))).containsExactly(1L, 2L, 3L);
    }
  }

  /** Its files were examined; other clients did not wait for that. */
  @Test
  void aTableThatChangedMeanwhileStays() throws IOException {
    Table table = create("t", Map.of());
    Purge changed =
        purge(
            () -> {
              Table examined = catalog.loadTable(T);
              TestLake.append(catalog.loadTable(T), 3);
              return examined;
            });
    assertNotDropped(changed::run);
    changed.check(null); // the key of other rows is the same
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 2L, 3L);

    EncryptedCatalog noKms = withKms(Map.of());
    Catalog busy =
        Stub.of(
            Catalog.class,
            (proxy, method, arguments) -> {
              if (method.getName().equals("invalidateTable")) { // all is examined
                TestLake.append(catalog.loadTable(T), 4);
              }
              return method.invoke(noKms.delegate(), arguments);
            });
    Purge lost =
        new Purge(() -> noKms.loadTable(T), null, busy, T, "lake.db.t", false, gc -> false);
    assertNotDropped(() -> lost.runWithoutKey(true, () -> Assertions.fail("it has storage")));
    assertThat(TestLake.files(table)).isNotEmpty();
  }

  /** Iceberg would drop the new one, and delete its files. */
  @Test
  void aTableThatWasMadeAgainMeanwhileStays() {
    assumeTrue(backend != Backend.HADOOP, "its drop deletes the files that are examined");
    create("t", Map.of());
    Purge again =
        purge(
            () -> {
              Table examined = catalog.loadTable(T);
              stock().dropTable(T, false);
              create("t", Map.of());
              return examined;
            });
    assertNotDropped(() -> again.check(null));
    assertNotDropped(again::run);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 2L);
  }

  private Purge purge(Supplier<Table> load) {
    return new Purge(
        load,
        null,
        catalog.delegate(),
        T,
        "lake.db.t",
        false,
        catalog.context().behind()::mayShareFiles);
  }

  private Catalog stock() {
    try {
      return lake.openStock();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void assertNotDropped(ThrowingCallable purge) {
    assertThatThrownBy(purge)
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "another client changed it");
    assertThat(catalog.tableExists(T)).isTrue();
  }

  @Test
  @Tag("HADOOP")
  void filesThatMayBeAnothersAreRefused() throws IOException {
    Table table = create("t", Map.of("gc.enabled", "false"));
    String onDrop =
        switch (backend) {
          case HADOOP -> "deletes the folder";
          case REST -> "lets the REST server delete the files";
          default -> "without PURGE";
        };
    assertRefused(withoutKey(), table, "gc.enabled", onDrop);
  }

  @Test
  void aFolderThatIsNoTablesOwnIsRefused() {
    Table table = create("t", Map.of());
    for (String location : List.of("/tmp", "s3://bucket/", "/a/../b")) {
      TableMetadata metadata =
          TableMetadata.newTableMetadata(TestLake.SCHEMA, table.spec(), location, Map.of());
      FileIO storage = TableFileIO.storageBelow(new HadoopFileIO(new Configuration()));
      assertThatThrownBy(
              () ->
                  new LostKeyPurge("lake.db.t", metadata, storage)
                      .run(() -> Assertions.fail("dropped")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.t", "nothing was dropped", "table's own folder");
    }
  }

  /** Where a name that begins alike is not below: s3://b/db/t2 lists with s3://b/db/t. */
  @Test
  void inAnObjectStoreWhatBeginsAlikeStays() {
    List<String> others =
        List.of("s3://b/db/t", "s3://b/db/t2/data/f", "s3://b/db/t-old/f", "s3://b/db/u/t/f");
    List<String> own = List.of("s3://b/db/t/data/f", "s3://b/db/t/metadata/x.metadata.json");
    ObjectStore store = new ObjectStore();
    store.objects.addAll(others);
    store.objects.addAll(own);
    PurgeResult purged =
        new LostKeyPurge("t", at("s3://b/db/t", own.get(1)), store).run(() -> true);
    assertThat(purged.files()).isEqualTo(2);
    assertThat(store.objects).containsExactlyInAnyOrderElementsOf(others);

    store.objects.addAll(own);
    store.slow.set(2);
    new LostKeyPurge("t", at("s3://b/db/t", own.get(1)), store).run(() -> true);
    assertThat(store.objects).as("tried again").containsExactlyInAnyOrderElementsOf(others);

    store.objects.addAll(own);
    IntStream.range(0, 5000).forEach(i -> store.objects.add("s3://b/db/t/data/" + i));
    store.deletes = false;
    store.tried.clear();
    assertThatThrownBy(
            () -> new LostKeyPurge("t", at("s3://b/db/t", own.get(1)), store).run(() -> true))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("it was dropped, but files remain in s3://b/db/t")
        .hasMessageContaining("s3://b/db/t/data/0: the storage silently deletes nothing");
    assertThat(store.tried).hasSize(1000);
    for (String root : List.of("s3://b", "s3://b/", "abfss://c@b", "gs://b//")) {
      assertThatThrownBy(
              () ->
                  new LostKeyPurge("t", at(root, own.get(1)), store)
                      .run(() -> Assertions.fail("dropped")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("table's own folder");
    }
  }

  /** A job makes a table of that name again, at once: its files are not the old one's. */
  @Test
  void whatIsMadeAfterTheDropStays() {
    String own = "s3://b/db/t/metadata/x.metadata.json";
    String sameSecond = "s3://b/db/t/metadata/00000-new.metadata.json";
    String later = "s3://b/db/t/data/new.parquet";
    String hint = "s3://b/db/t/metadata/version-hint.text"; // a name that a new table has again
    ObjectStore store = new ObjectStore();
    store.objects.addAll(
        List.of(own, hint, "s3://b/db/t/data/a.parquet", "s3://b/db/t/data/z.parquet"));
    store.created.putAll(Map.of(own, 3000L, hint, 3000L));
    assertThatThrownBy(
            () ->
                new LostKeyPurge("lake.db.t", at("s3://b/db/t", own), store)
                    .run(
                        () -> {
                          store.created.putAll(
                              Map.of(sameSecond, 3000L, later, 4000L, hint, 4000L));
                          return store.objects.addAll(List.of(sameSecond, later));
                        }))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("lake.db.t", "it was dropped", "newer", later, sameSecond)
        .hasMessageContaining("nothing is to be done");
    assertThat(store.objects).containsExactlyInAnyOrder(sameSecond, later, hint);
  }

  @Test
  void filesFromTheFutureAreRefused() {
    String own = "s3://b/db/t/metadata/x.metadata.json";
    ObjectStore store = new ObjectStore();
    store.objects.addAll(List.of(own, "s3://b/db/t/data/f.parquet"));
    store.created.put(own, System.currentTimeMillis() + 90_000);
    assertThatThrownBy(
            () ->
                new LostKeyPurge("lake.db.t", at("s3://b/db/t", own), store)
                    .run(() -> Assertions.fail("dropped")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "from the future", own);
    store.created.put(own, System.currentTimeMillis() + 30_000);
    new LostKeyPurge("lake.db.t", at("s3://b/db/t", own), store).run(() -> true);
    assertThat(store.objects).isEmpty();
  }

  /** Nobody knows whose these are; the table's location may be the folder of a whole shop. */
  @Test
  void filesBesideTheTablesOwnAreRefused() {
    String own = "s3://b/db/t/metadata/x.metadata.json";
    for (String other :
        List.of(
            "part-0.parquet",
            "id=1/part-0.parquet",
            "orders/data/f.parquet",
            "data2/f.parquet",
            "_delta_log/00.json",
            "data/events/_delta_log/00.json",
            ".hoodie/hoodie.properties",
            "data/events/.hoodie/hoodie.properties")) {
      ObjectStore store = new ObjectStore();
      store.objects.addAll(List.of(own, "s3://b/db/t/data/f.parquet", "s3://b/db/t/" + other));
      assertStrange(store, at("s3://b/db/t", own), "(1), such as [s3://b/db/t/" + other + "]");
    }

    ObjectStore store = new ObjectStore();
    IntStream.range(0, 7).forEach(i -> store.objects.add("s3://b/db/t/" + i));
    assertStrange(store, at("s3://b/db/t", own), "(7), such as [", "s3://b/db/t/4]");
  }

  private static void assertStrange(ObjectStore store, TableMetadata metadata, String... words) {
    Set<String> before = Set.copyOf(store.objects);
    assertThatThrownBy(
            () ->
                new LostKeyPurge("lake.db.t", metadata, store)
                    .run(() -> Assertions.fail("dropped")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "may not be of this table")
        .hasMessageContainingAll("below /data/, /metadata/ in its folder", "without PURGE")
        .hasMessageContainingAll(words);
    assertThat(store.objects).containsExactlyInAnyOrderElementsOf(before);
  }

  @Test
  void theTablesOwnFoldersMayBeOthers() {
    String own = "s3://b/db/t/elsewhere/x.metadata.json";
    ObjectStore store = new ObjectStore();
    store.objects.addAll(
        List.of(
            own,
            "s3://b/db/t/data/f.parquet",
            "s3://b/db/t/data/f.parquet.crc",
            "s3://b/db/t/data_$folder$",
            "s3://b/db/t/metadata/version-hint.text",
            "s3://b/db/t/metadata/_encryption-1/f",
            "s3://b/db/t/new/part=1/f.parquet",
            "s3://b/db/t/meta/m0.avro",
            "s3://b/db/t/hashed/01/f.parquet"));
    TableMetadata metadata =
        TableMetadata.buildFrom(at("s3://b/db/t", own))
            .setProperties(
                Map.of(
                    "write.data.path",
                    "s3a://b/db/t/new/",
                    "write.metadata.path",
                    "s3://b/db/t/meta",
                    "write.object-storage.path",
                    "s3://b/db/t/hashed"))
            .discardChanges()
            .withMetadataLocation(own)
            .build();
    assertThat(new LostKeyPurge("t", metadata, store).run(() -> true))
        .isEqualTo(new PurgeResult(9, 8, List.of()));
    assertThat(store.objects).isEmpty();
  }

  @Test
  void theLocationMayBeTheDataFolder() {
    String own = "s3://b/db/t/metadata/x.metadata.json";
    ObjectStore store = new ObjectStore();
    store.objects.addAll(List.of(own, "s3://b/db/t/part=1/f.parquet"));
    TableMetadata metadata =
        TableMetadata.buildFrom(at("s3://b/db/t", own))
            .setProperties(Map.of("write.data.path", "s3a://b/db/t/"))
            .discardChanges()
            .withMetadataLocation(own)
            .build();
    assertThat(new LostKeyPurge("t", metadata, store).run(() -> true))
        .isEqualTo(new PurgeResult(2, 2, List.of()));
    assertThat(store.objects).isEmpty();
  }

  /** S3's addresses end at a # or a ?: such a folder lists more than what is in it. */
  @Test
  void aFolderThatListsMoreThanItsOwnIsRefused() {
    ObjectStore store = new ObjectStore();
    store.objects.addAll(List.of("s3://b/db/t2/data/f", "s3://b/db/t/data/f"));
    for (String location : List.of("s3://b/db/t#1", "s3://b/db/t?1", "s3://b/db/#")) {
      assertThatThrownBy(
              () ->
                  new LostKeyPurge("t", at(location, "s3://b/m.metadata.json"), store)
                      .run(() -> Assertions.fail("dropped")))
          .as(location)
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("nothing was dropped", "the storage lists");
    }

    assertThat(store.objects).hasSize(2);
  }

  /** Whose metadata it is nobody knows then, and a retry may tell. */
  @Test
  void metadataThatCannotBeReadIsNotAnotherTables() {
    String current = "s3://b/db/t/metadata/00009-x.metadata.json";
    List<String> older =
        IntStream.range(0, 9).mapToObj(i -> current.replace("00009", "0000" + i)).toList();
    ObjectStore store = new ObjectStore();
    store.objects.add(current);
    store.objects.addAll(older);
    TableMetadata metadata = at("s3://b/db/t", current);
    String json = TableMetadataParser.toJson(metadata);
    older.forEach(file -> store.contents.put(file, json));
    String last = older.get(8);
    for (RuntimeException failure :
        List.of(
            new IllegalStateException("Slow Down (Service: S3, Status Code: 503)"),
            new UncheckedIOException(new IOException("Connection reset")),
            new ForbiddenException("denied: %s", last))) {
      store.failures.put(last, failure);
      assertThatThrownBy(
              () ->
                  new LostKeyPurge("lake.db.t", metadata, store)
                      .run(() -> Assertions.fail("dropped")))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContainingAll("lake.db.t", "nothing was dropped", last, "cannot be read")
          .hasMessageContainingAll(Causes.innermostMessage(failure), "without PURGE")
          .message()
          .doesNotContain("not of this table");
    }

    store.failures.clear();
    store.readers.clear();
    assertThat(new LostKeyPurge("t", metadata, store).run(() -> true).files()).isEqualTo(10);
    assertThat(store.objects).isEmpty();
    assertThat(store.readers)
        .as("the worker pool's, and the file in force needs no look")
        .hasSize(9)
        .doesNotContain(Thread.currentThread());
  }

  private static TableMetadata at(String location, String metadataFile) {
    return TableMetadata.buildFrom(TestLake.metadata(location, Map.of()))
        .discardChanges()
        .withMetadataLocation(metadataFile)
        .build();
  }

  /** Keys, which S3FileIO lists by what they begin with. */
  private static final class ObjectStore extends InMemoryFileIO
      implements SupportsPrefixOperations {
    private static final long serialVersionUID = 1L;

    private final Set<String> objects = new ConcurrentSkipListSet<>();
    private final Map<String, Long> created = new ConcurrentHashMap<>();
    private final Map<String, String> contents = new HashMap<>();
    private final Map<String, RuntimeException> failures = new HashMap<>();
    private final Queue<Thread> readers = new ConcurrentLinkedQueue<>();
    private final Set<String> tried = ConcurrentHashMap.newKeySet();
    private boolean deletes = true;
    private final AtomicInteger slow = new AtomicInteger();

    @Override
    public Iterable<FileInfo> listPrefix(String prefix) {
      String key = prefix.replaceFirst("[?#].*", "");
      return objects.stream().filter(object -> object.startsWith(key)).map(this::info).toList();
    }

    private FileInfo info(String object) {
      int size = object.endsWith("_$folder$") ? 0 : 1;
      return new FileInfo(object, size, created.getOrDefault(object, 1L));
    }

    @Override
    public void deletePrefix(String prefix) {
      throw new UnsupportedOperationException(prefix);
    }

    @Override
    public InputFile newInputFile(String path) {
      String content = contents.getOrDefault(path, "");
      return new InMemoryInputFile(path, content.getBytes(StandardCharsets.UTF_8)) {
        @Override
        public boolean exists() {
          return objects.contains(path);
        }

        @Override
        public SeekableInputStream newStream() {
          readers.add(Thread.currentThread());
          if (failures.containsKey(path)) {
            throw failures.get(path);
          }

          return super.newStream();
        }
      };
    }

    @Override
    public void deleteFile(String path) {
      tried.add(path);
      if (slow.getAndDecrement() > 0) {
        throw new IllegalStateException("503 Slow Down");
      } else if (deletes) {
        objects.remove(path);
      }
    }
  }

  @Test
  void aKeyThatMayNotBeUsedIsNoLostKey() throws IOException {
    create("t", Map.of());
    Map<String, String> kms = Map.of("encryption.kms-impl", Denied.class.getName());
    try (EncryptedCatalog denied = withKms(kms)) {
      assertThatThrownBy(() -> denied.dropTable(T, true))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining("Nothing was dropped")
          .message()
          .doesNotContain("purge_without_key");
      assertThatThrownBy(() -> denied.context().purgeWithoutKey(T, true))
          .isInstanceOf(AccessDeniedException.class);
    }

    assertThat(catalog.tableExists(T)).isTrue();
  }

  @Test
  void aKmsThatDoesNotAnswerIsNoLostKey() throws IOException {
    Table table = create("t", Map.of());
    String retry = "encryption.kms.retry.max-attempts";
    Map<String, String> kms = Map.of("encryption.kms-impl", DownKms.class.getName(), retry, "1");
    try (EncryptedCatalog down = withKms(kms)) {
      assertThatThrownBy(() -> down.context().purgeWithoutKey(T, true))
          .isInstanceOf(KmsUnavailableException.class)
          .hasMessageContainingAll("Nothing was dropped", "gone for good", "encryption.kms-impl");
    }

    assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
  }

  /** A KMS that does not let us. */
  public static final class Denied extends FailingKms {
    private static final long serialVersionUID = 1L;

    @Override
    protected RuntimeException failure() {
      return new AccessDeniedException("not for you", "Ask.");
    }
  }

  private void assertRefused(EncryptedCatalog with, Table table, String... words) {
    assertThatThrownBy(() -> with.context().purgeWithoutKey(T, true))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "hint:")
        .hasMessageContainingAll(words);
    assertThat(catalog.tableExists(T)).isTrue();
    assertThat(TestLake.files(table)).isNotEmpty();
  }
}
