package io.icebergcrypto.integrity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.metadata.MetadataFile;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Consumer;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Metadata on catalogs that keep a pointer: what someone who can write to the storage can do to it.
 * Each attack is first shown to go through on the stock catalog behind.
 */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP"})
public class MetadataAuthenticationTest extends LakeFixture {
  private static final Map<String, String> OFF =
      Map.of("encryption.metadata-authentication", "off");

  // ---- helpers

  private Table create(String name) {
    return TestLake.createTable(catalog, name, Map.of());
  }

  /** A new session's view of the table. */
  private Table reloaded() throws IOException {
    return lake.open(Map.of()).loadTable(T);
  }

  static TableMetadata metadata(Table table) {
    table.refresh();
    return TestLake.metadata(table);
  }

  static Path file(Table table) {
    return TestLake.path(metadata(table).metadataFileLocation());
  }

  /** Puts other bytes in a file, and in the checksum that Hadoop keeps of it. */
  static void replace(Path file, String content) throws IOException {
    Files.deleteIfExists(file.resolveSibling("." + file.getFileName() + ".crc"));
    Files.writeString(file, content);
  }

  /** As sha256sum prints it. */
  public static String sha256(Path file) throws IOException {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      return HexFormat.of().formatHex(digest.digest(Files.readAllBytes(file)));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Signs what a table's file has. */
  private void authenticate(Table table) throws IOException {
    String file = metadata(table).metadataFileLocation();
    catalog.context().authenticateMetadata(T, file, sha256(TestLake.path(file)));
  }

  static void edit(Path file, Consumer<JsonObject> change) throws IOException {
    JsonObject json = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    change.accept(json);
    replace(file, json.toString());
  }

  private void assertRefused(String... words) throws IOException {
    Map<Path, String> before = TestLake.states(folder.resolve("warehouse"));
    Table table = reloaded();
    assertThatThrownBy(table::schema)
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.t", "metadata.json")
        .hasMessageContainingAll(words);
    assertThatThrownBy(() -> TestLake.ids(table)).isInstanceOf(TamperedException.class);
    assertThatThrownBy(table::newAppend).isInstanceOf(TamperedException.class);
    assertThatThrownBy(() -> TestLake.write(table, 77)).isInstanceOf(TamperedException.class);
    assertThat(TestLake.states(folder.resolve("warehouse"))).isNotEmpty().isEqualTo(before);
    try (Closeable stock = (Closeable) lake.openStock()) {
      assertThatCode(() -> ((Catalog) stock).loadTable(T).schema())
          .as("the stock catalog takes it")
          .doesNotThrowAnyException();
    }
  }

  // ---- edits

  /** Changes a value somewhere in JSON to another one of its kind, if it is a leaf. */
  private static JsonElement changed(JsonElement leaf) {
    JsonPrimitive value = leaf.getAsJsonPrimitive();
    if (value.isBoolean()) {
      return new JsonPrimitive(!value.getAsBoolean());
    }

    return value.isNumber()
        ? new JsonPrimitive(value.getAsLong() + 1)
        : new JsonPrimitive(value.getAsString() + "x");
  }

  /** One change for each leaf of the document, by its path. */
  private static void leaves(
      JsonElement at, String path, Map<String, Consumer<JsonObject>> edits, List<Object> steps) {
    if (at instanceof JsonObject object) {
      object
          .asMap()
          .forEach((name, value) -> leaves(value, path + "." + name, edits, with(steps, name)));
    } else if (at instanceof JsonArray array) {
      for (int i = 0; i < array.size(); i++) {
        leaves(array.get(i), path + "[" + i + "]", edits, with(steps, i));
      }
    } else if (at.isJsonPrimitive()) {
      edits.put(
          path,
          json -> {
            JsonElement parent = json;
            for (Object step : steps.subList(0, steps.size() - 1)) {
              parent =
                  step instanceof Integer index
                      ? parent.getAsJsonArray().get(index)
                      : parent.getAsJsonObject().get((String) step);
            }
            Object last = steps.get(steps.size() - 1);
            if (last instanceof Integer index) {
              parent.getAsJsonArray().set(index, changed(at));
            } else {
              parent.getAsJsonObject().add((String) last, changed(at));
            }
          });
    }
  }

  private static List<Object> with(List<Object> steps, Object step) {
    List<Object> longer = new ArrayList<>(steps);
    longer.add(step);
    return longer;
  }

  @Test
  void everyFieldIsAuthenticated() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    TestLake.append(table, 2);
    table.updateSchema().addColumn("more", Types.IntegerType.get(), "doc").commit();
    table.updateSpec().addField(Expressions.bucket("id", 4)).commit();
    table.replaceSortOrder().asc("id").commit();
    table.manageSnapshots().createTag("tag", table.currentSnapshot().snapshotId()).commit();
    Path file = file(table);
    String genuine = Files.readString(file);
    Map<String, Consumer<JsonObject>> edits = new TreeMap<>();
    leaves(JsonParser.parseString(genuine), "", edits, List.of());
    assertThat(edits.keySet()).hasSizeGreaterThan(80);

    Catalog fresh = lake.open(Map.of());
    int takenByStock = 0;
    for (Map.Entry<String, Consumer<JsonObject>> edit : edits.entrySet()) {
      JsonObject json = JsonParser.parseString(genuine).getAsJsonObject();
      edit.getValue().accept(json);
      TableMetadata edited;
      try {
        edited = TableMetadataParser.fromJson(file.toString(), json.toString());
      } catch (RuntimeException e) {
        continue; // Iceberg itself cannot read it
      }

      if (TableMetadataParser.toJson(edited)
          .equals(
              TableMetadataParser.toJson(TableMetadataParser.fromJson(file.toString(), genuine)))) {
        continue; // Iceberg does not look at it
      }

      takenByStock++;
      replace(file, json.toString());
      Table loaded = fresh.loadTable(T);
      assertThatThrownBy(loaded::schema)
          .as(edit.getKey())
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("lake.db.t");
    }

    assertThat(takenByStock).isGreaterThan(60);
    replace(file, genuine);
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 2L);
  }

  /** Iceberg's builder has statistics files in a hash map, and reverses those in one bucket. */
  @Test
  void theOrderOfStatisticsFilesIsThatOfTheFile() throws IOException {
    create("t");
    Table table = lake.open(Map.of("encryption.statistics", "plaintext")).loadTable(T);
    for (long snapshotId = 16; snapshotId <= 64; snapshotId += 16) {
      table
          .updateStatistics()
          .setStatistics(new GenericStatisticsFile(snapshotId, "/s" + snapshotId, 9, 9, List.of()))
          .commit();
    }

    assertThat(reloaded().statisticsFiles()).hasSize(4);
  }

  static void dropSnapshots(JsonObject json) {
    json.add("snapshots", new JsonArray());
    json.add("refs", new JsonObject());
    json.add("snapshot-log", new JsonArray());
    json.add("current-snapshot-id", JsonNull.INSTANCE);
  }

  private static void strip(JsonObject json) {
    JsonObject properties = json.getAsJsonObject("properties");
    properties.keySet().removeIf(name -> name.startsWith("encryption."));
    properties.remove("write.metadata.path");
    json.remove("encryption-keys");
    dropSnapshots(json);
  }

  @Test
  void aTableStrippedOfAllEncryptionIsKnownByItsPointer() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    edit(file(table), MetadataAuthenticationTest::strip);
    if (backend == Backend.JDBC) {
      assertRefused("encryption.key-id is gone");
      // it would write plaintext before its commit is refused
      assertThatThrownBy(() -> catalog.buildTable(T, TestLake.SCHEMA).createOrReplaceTransaction())
          .isInstanceOf(TamperedException.class);
    } else {
      // what SECURITY.md says of Hadoop: nothing outside of the storage knows of the table
      assertThat(TestLake.ids(reloaded())).isEmpty();
    }
  }

  @Test
  void anEmptyTableIsAuthenticatedToo() throws IOException {
    Table table = create("t");
    assertThat(table.properties().get(MetadataMac.PROPERTY)).startsWith("v3.hmac-sha256.");
    edit(
        file(table),
        json -> {
          json.getAsJsonObject("properties").remove(MetadataMac.PROPERTY);
          json.remove("encryption-keys");
        });
    assertRefused("has no encryption.metadata-mac");
  }

  /** The check reads the file again, as a later Iceberg may have written more than was loaded. */
  @Test
  void aStorageThatFailsInTheCheckIsNoTampering() throws IOException {
    Table table = create("t");
    edit(file(table), json -> json.getAsJsonObject("properties").addProperty("comment", "x"));
    assertRefused("its MAC does not match");
    try (EncryptedCatalog other = lake.open(Map.of("io-impl", AwayInTheCheck.class.getName()))) {
      assertThatThrownBy(() -> other.loadTable(T).schema())
          .isExactlyInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("nameservice1");
    }
  }

  /** Gives metadata to the catalog behind, and not to the check. */
  public static final class AwayInTheCheck extends HadoopFileIO {
    private static final long serialVersionUID = 1L;

    @Override
    public InputFile newInputFile(String path) {
      boolean checks =
          StackWalker.getInstance()
              .walk(
                  frames ->
                      frames.anyMatch(
                          frame -> frame.getClassName().equals(MetadataFile.class.getName())));
      if (checks) {
        throw new IllegalArgumentException(new UnknownHostException("nameservice1"));
      }

      return super.newInputFile(path);
    }
  }

  // ---- other metadata in place

  @Test
  void anotherTablesMetadataIsRefused() throws IOException {
    Table table = create("t");
    Table other = create("other");
    TestLake.append(table, 1);
    TestLake.append(other, 2);
    replace(file(table), Files.readString(file(other)));
    if (backend == Backend.JDBC) {
      assertRefused("it is of another table");
    } else {
      assertRefused("it is genuine, but of the table at", "db/other", "registration");
    }
  }

  @Test
  void theMetadataOfADroppedTableOfTheSameNameIsRefused() throws IOException {
    Table dropped = TestLake.append(create("t"), 1);
    UUID uuid = dropped.uuid();
    String before = Files.readString(file(dropped));
    catalog.dropTable(T, false);
    Table table = TestLake.append(create("t"), 2);
    replace(file(table), before);
    if (backend == Backend.JDBC) {
      assertRefused("it is of another table");
    } else {
      // as SECURITY.md says: nothing outside of the storage knows which of the two it is
      assertThat(reloaded().uuid()).isEqualTo(uuid);
    }
  }

  // ---- stock writers

  @Test
  void aKeyIdThatAStockClientRemovedComesBackWithTheSignature() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    Table stock = lake.openStock().loadTable(T);
    stock.updateProperties().remove("encryption.key-id").commit();
    assertRefused("encryption.key-id is gone (it was 'k1')", "authenticate_metadata");
    assertThatThrownBy(table::refresh).isInstanceOf(TamperedException.class);
    authenticate(stock);
    assertThat(reloaded().properties()).containsEntry("encryption.key-id", "k1");
    assertThat(TestLake.ids(reloaded())).containsExactly(1L);
  }

  @Test
  void plaintextThatAStockClientWroteIntoAnEmptyTableIsRefused() throws IOException {
    create("t");
    Table stock = TestLake.append(lake.openStock().loadTable(T), 1);
    assertRefused("committed by a client that does not authenticate");
  }

  @Test
  void stockReadsAndWritesWhatIsSigned() throws IOException {
    create("t");
    Table stock = lake.openStock().loadTable(T);
    assertThat(stock.schema().columns()).hasSize(2);
    stock.updateSchema().addColumn("more", Types.IntegerType.get()).commit();
    assertThat(lake.openStock().loadTable(T).schema().columns()).hasSize(3);
  }

  // ---- off

  @Test
  void offNeitherChecksNorSigns() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    Table off = TestLake.append(lake.open(OFF).loadTable(T), 2);
    assertThat(TestLake.ids(off)).containsExactly(1L, 2L);
    assertRefused("committed by a client that does not authenticate");
    assertThat(TestLake.ids(lake.open(OFF).loadTable(T))).containsExactly(1L, 2L);
    authenticate(off);
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 2L);
    assertThatThrownBy(() -> lake.open(Map.of("encryption.metadata-authentication", "maybe")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("'maybe'");
  }

  @Test
  void aTableFromBeforeCanBeSigned() throws IOException {
    Catalog off = lake.open(OFF);
    Table old = TestLake.createTable(off, "t", Map.of());
    assertRefused("has no encryption.metadata-mac");
    TestLake.append(old, 1);
    assertRefused("has no encryption.metadata-mac");
    authenticate(old);
    assertThat(TestLake.ids(reloaded())).containsExactly(1L);
  }

  // ---- what must go on working

  @Test
  void everyKindOfCommitIsSigned() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    long first = table.currentSnapshot().snapshotId();
    table.manageSnapshots().createBranch("b", first).commit();
    table.newAppend().appendFile(TestLake.write(table, 5)).toBranch("b").commit();
    TestLake.append(table, 2);
    long second = table.currentSnapshot().snapshotId();
    table.manageSnapshots().rollbackTo(first).commit();
    table.manageSnapshots().setCurrentSnapshot(second).commit();
    table.updateProperties().set("write.metadata.compression-codec", "gzip").commit();
    table.updateProperties().set("encryption.data-key-length", "32").commit();
    table.updateSchema().updateColumnDoc("data", "text").commit();
    Transaction transaction = table.newTransaction();
    transaction.newAppend().appendFile(TestLake.write(table, 3)).commit();
    transaction.updateProperties().remove(MetadataMac.PROPERTY).commit();
    TestLake.append(reloaded(), 4);
    transaction.commitTransaction(); // after a conflict
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 2L, 3L, 4L);
    table.refresh();
    table.manageSnapshots().removeBranch("b").commit();
    table.expireSnapshots().expireOlderThan(Long.MAX_VALUE).retainLast(1).commit();
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 2L, 3L, 4L);

    Transaction replace = catalog.buildTable(T, TestLake.SCHEMA).createOrReplaceTransaction();
    replace.newAppend().appendFile(TestLake.write(replace.table(), 9)).commit();
    replace.commitTransaction();
    assertThat(TestLake.ids(reloaded())).containsExactly(9L);
    if (backend == Backend.JDBC) {
      Table loaded = reloaded();
      loaded.updateLocation().setLocation(loaded.location() + "-moved").commit();
      TestLake.append(loaded, 10);
      assertThat(metadata(reloaded()).metadataFileLocation())
          .startsWith(reloaded().location() + "/metadata/authenticated-");
      loaded.updateProperties().set("write.metadata.path", loaded.location() + "/md").commit();
      TestLake.append(loaded, 11);
      assertThat(metadata(reloaded()).metadataFileLocation())
          .startsWith(reloaded().location() + "/md/authenticated-");
      loaded.updateProperties().remove("write.metadata.path").commit();
      catalog.renameTable(T, TableIdentifier.of(TestLake.DB, "u"));
      catalog.renameTable(TableIdentifier.of(TestLake.DB, "u"), T);
      assertThat(TestLake.ids(reloaded())).containsExactly(9L, 10L, 11L);
    }
  }

  @Test
  void aRegisteredTableIsChecked() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    String genuine = metadata(table).metadataFileLocation();
    TableIdentifier copy = TableIdentifier.of(TestLake.DB, "copy");
    Table registered = catalog.registerTable(copy, genuine);
    assertThat(TestLake.ids(registered)).containsExactly(1L);
    TestLake.append(registered, 2);
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(copy))).containsExactly(1L, 2L);
    edit(TestLake.path(genuine), json -> json.getAsJsonObject("properties").addProperty("x", "y"));
    TableIdentifier bad = TableIdentifier.of(TestLake.DB, "bad");
    assertThatThrownBy(() -> catalog.registerTable(bad, genuine))
        .isInstanceOf(TamperedException.class);
    assertThat(catalog.tableExists(bad)).isFalse();
  }

  /** As docs/metadata-authentication.md says: the MAC of a version is that of each line of them. */
  @Test
  void laterVersionsThanARegisteredOneAreAccepted() throws IOException {
    assumeTrue(backend == Backend.JDBC, "a Hadoop catalog registers in another folder");

    Table table = TestLake.append(create("t"), 1);
    String older = metadata(table).metadataFileLocation();
    TestLake.append(table, 2);
    Path abandoned = file(table);
    catalog.dropTable(T, false);
    Table registered = TestLake.append(catalog.registerTable(T, older), 3);
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 3L);
    replace(file(registered), Files.readString(abandoned));
    assertThat(TestLake.ids(reloaded())).containsExactly(1L, 2L);
  }

  /** On Hadoop the table would be signed for its new folder, regardless of the file by then. */
  @Test
  void aFileThatIsExchangedWhileItIsRegisteredIsNotSigned() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    String genuine = metadata(table).metadataFileLocation();
    TableIdentifier copy = TableIdentifier.of(TestLake.DB, "copy");
    try (EncryptedCatalog raced =
        lake.open(Map.of("io-impl", ExchangesWhenClosed.class.getName()))) {
      ExchangesWhenClosed.watched = file(table);
      assertThatThrownBy(() -> raced.registerTable(copy, genuine))
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("lake.db.copy");
    }
    assertThatThrownBy(() -> catalog.loadTable(copy).properties())
        .isInstanceOf(TamperedException.class);
  }

  /** The storage of an attacker who edits a metadata file as soon as it was looked at. */
  public static final class ExchangesWhenClosed extends HadoopFileIO {
    private static final long serialVersionUID = 1L;
    private static Path watched;

    @Override
    public void close() {
      super.close();
      Path file = watched;
      watched = null;
      if (file != null) {
        try {
          edit(file, json -> json.getAsJsonObject("properties").addProperty("x", "y"));
        } catch (IOException e) {
          throw new UncheckedIOException(e);
        }
      }
    }
  }

  /** Hadoop's FileIO, which names the file for the pointer, takes // for one slash. */
  @Test
  void aWarehouseMayBeWrittenWithTwoSlashes() throws IOException {
    try (EncryptedCatalog written =
        lake.open(Map.of("warehouse", "file:" + folder + "//ware//./house"))) {
      TableIdentifier table = TableIdentifier.of(Namespace.of("slashes"), "t");
      written.createNamespace(table.namespace());
      written.buildTable(table, TestLake.SCHEMA).withProperty("encryption.key-id", "k1").create();
      TestLake.append(written.loadTable(table), 1);
      assertThat(TestLake.ids(written.loadTable(table))).containsExactly(1L);
    }
  }

  @Test
  void aRefusedRegistrationLeavesWhatIsInTheFolder() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    Path backup = folder.resolve("backup/" + file(table).getFileName());
    Files.createDirectories(backup.getParent());
    Files.copy(file(table), backup);
    edit(backup, json -> json.getAsJsonObject("properties").addProperty("x", "y"));
    TableIdentifier lost = TableIdentifier.of(TestLake.DB, "lost");
    Path data = folder.resolve("warehouse/db/lost/data/rows.parquet");
    Files.createDirectories(data.getParent());
    Files.writeString(data, "all that is left of the table");
    assertThatThrownBy(() -> catalog.registerTable(lost, backup.toString()))
        .isInstanceOf(TamperedException.class);
    assertThat(catalog.tableExists(lost)).isFalse();
    assertThat(data).exists();
  }

  @Test
  void aReplacementHasItsManifestsAtItsOwnLocation() throws IOException {
    assumeTrue(backend == Backend.JDBC, "a Hadoop table cannot be moved");

    String before = TestLake.append(create("t"), 1).location();
    Transaction replace =
        catalog
            .buildTable(T, TestLake.SCHEMA)
            .withLocation(before + "-b")
            .createOrReplaceTransaction();
    replace.newAppend().appendFile(TestLake.write(replace.table(), 2)).commit();
    replace.commitTransaction();
    assertNewestIsAt(before + "-b");
    Transaction move = reloaded().newTransaction();
    move.updateLocation().setLocation(before + "-c").commit();
    move.newFastAppend().appendFile(TestLake.write(move.table(), 3)).commit();
    move.commitTransaction();
    assertNewestIsAt(before + "-c");
    assertThat(TestLake.ids(reloaded())).containsExactly(2L, 3L);
  }

  private void assertNewestIsAt(String location) throws IOException {
    Table table = reloaded();
    Snapshot newest = table.currentSnapshot();
    assertThat(metadata(table).metadataFileLocation())
        .startsWith(location + "/metadata/authenticated-" + table.uuid() + "/");
    assertThat(newest.manifestListLocation()).startsWith(location + "/metadata/snap-");
    assertThat(newest.allManifests(table.io()))
        .filteredOn(manifest -> manifest.snapshotId() == newest.snapshotId())
        .isNotEmpty()
        .allMatch(manifest -> manifest.path().startsWith(location + "/metadata/"));
  }

  /** As in a CREATE TABLE with all that SHOW TBLPROPERTIES has of another table. */
  @Test
  void copiedPropertiesLeadIntoNoOtherTablesFolder() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    Map<String, String> copied = new HashMap<>(metadata(table).properties());
    assertThat(copied.containsKey("write.metadata.path")).isEqualTo(backend == Backend.JDBC);
    Map<Path, String> before = TestLake.states(TestLake.path(table.location()));
    assertIsApart(catalog, copied);
    assertIsApart(lake.open(OFF), copied);
    for (Backend other : NIGHTLY ? List.of(Backend.REST, Backend.HIVE) : List.<Backend>of()) {
      Path own = Files.createDirectory(folder.resolve(other.name()));
      TestLake others = new TestLake(other, own, TestKeystore.create(own, "k1").properties());
      try (EncryptedCatalog there = others.open(Map.of())) {
        there.createNamespace(TestLake.DB);
        assertIsApart(there, copied);
      } finally {
        other.empty(others.openStock());
      }
    }

    copied.remove("encryption.key-id");
    assertIsApart(catalog, copied);
    assertThat(TestLake.states(TestLake.path(table.location()))).isEqualTo(before);
  }

  private static void assertIsApart(EncryptedCatalog where, Map<String, String> copied) {
    TableIdentifier name = TableIdentifier.of(TestLake.DB, "c");
    Transaction select =
        where.buildTable(name, TestLake.SCHEMA).withProperties(copied).createTransaction();
    select.newAppend().appendFile(TestLake.write(select.table(), 1)).commit();
    select.commitTransaction();
    Table made = TestLake.append(where.loadTable(name), 2);
    String path = copied.get("write.metadata.path");
    if (path != null) {
      assertThatThrownBy(() -> made.updateProperties().set("write.metadata.path", path).commit())
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.c", "belongs to another", path, "Leave it out");
    }

    TestLake.append(made, 3);
    assertThat(TestLake.ids(where.loadTable(name))).containsExactly(1L, 2L, 3L);
    where.dropTable(name, true);
    where.buildTable(name, TestLake.SCHEMA).withProperties(copied).create();
    assertThat(TestLake.ids(where.loadTable(name))).isEmpty();
    where.dropTable(name, true);
  }

  @Test
  void checkingCostsNoCallOfTheKms() throws IOException {
    Table table = TestLake.append(create("t"), 1);
    EncryptedCatalog session = lake.open(Map.of());
    assertThat(TestLake.ids(session.loadTable(T))).containsExactly(1L);
    assertThat(session.context().kms().metrics().snapshot().get("unwrap_calls")).hasToString("1");
    session.close();
  }
}
