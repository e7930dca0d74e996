package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.exceptions.NoSuchNamespaceException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * REST servers that do not create a table in a transaction, that take no keys, or that forget a
 * property.
 */
@ParameterizedClass
@EnumSource(names = "REST")
class RefusingServersTest extends LakeFixture {
  /** What such servers answer: Glue's, others', and some that would not be reached by a header. */
  private static final List<String> ANSWERS =
      List.of(
          "400 InvalidInputException",
          "400 IllegalArgumentException",
          "406 UnsupportedOperationException",
          "405 MethodNotAllowed",
          "404 NotFound",
          "422 UnprocessableEntityException",
          "501 NotImplemented");

  /** A catalog on a server that refuses this. */
  private EncryptedCatalog refusing(String what) throws IOException {
    return lake.open(Map.of("header.X-Refuse", what));
  }

  private static int keys(Table table) {
    return TestLake.metadata(table).encryptionKeys().size();
  }

  private Set<Path> written() throws IOException {
    Path warehouse = // of the server that all tests share
        TestLake.path(TestLake.createTable(catalog, "where", Map.of()).location()).getParent();
    catalog.dropTable(TableIdentifier.of(TestLake.DB, "where"), true);
    try (Stream<Path> all = Files.walk(warehouse)) {
      return all.filter(Files::isRegularFile).collect(Collectors.toSet());
    }
  }

  @Test
  void aServerThatStagesNoTablesGetsThemOneByOne() throws IOException {
    for (String answer : ANSWERS) {
      EncryptedCatalog server = refusing("stage-create " + answer);
      Table table = TestLake.createTable(server, "t", Map.of());
      assertThat(keys(table)).as(answer).isEqualTo(1);
      TestLake.append(table, 1);
      assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
      assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of()))
          .isInstanceOf(AlreadyExistsException.class);
      assertThat(server.dropTable(T, true)).isTrue();
    }
  }

  /**
   * As Spark does when a CREATE ... AS SELECT fails there: the table object has gone on meanwhile.
   */
  @Test
  void aTableIsTakenBackUnlessAnotherClientHasUsedIt() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    TableMetadata made = TestLake.metadata(table);
    TestLake.append(table, 1);
    assertThat(catalog.context().behind().takeBack(T, made)).isFalse();
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
    catalog.dropTable(T, true);

    TableMetadata empty = TestLake.metadata(TestLake.createTable(catalog, "t", Map.of()));
    assertThat(catalog.context().behind().takeBack(T, made)).isFalse(); // another of that name
    assertThat(catalog.tableExists(T)).isTrue();
    assertThat(catalog.context().behind().takeBack(T, empty)).isTrue();
    assertThat(catalog.tableExists(T)).isFalse();
  }

  @Test
  void anAnswerThatLeavesItOpenIsNotTriedAgain() throws IOException {
    for (String answer : List.of("500 E", "502 E", "503 E", "504 E", "403 E", "401 E", "409 E")) {
      EncryptedCatalog server = refusing("stage-create " + answer);
      assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of())).as(answer).isNotNull();
      assertThat(catalog.tableExists(T)).as(answer).isFalse();
    }

    EncryptedCatalog server = refusing("stage-create 404 NoSuchNamespaceException");
    assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of()))
        .isInstanceOf(NoSuchNamespaceException.class);
  }

  @Test
  void aTransactionNeedsAServerThatStagesTables() throws IOException {
    EncryptedCatalog server = refusing("stage-create 400 InvalidInputException");
    Catalog.TableBuilder builder =
        server.buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1");
    for (Runnable begin : transactions(builder)) {
      assertThatThrownBy(begin::run)
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", "stage-create", "CREATE TABLE first, then INSERT");
    }

    assertThat(catalog.tableExists(T)).isFalse();
  }

  @Test
  void aServerThatTakesNoKeysGetsNoTable() throws IOException {
    Set<Path> before = written();
    for (String answer :
        List.of("400 BadRequestException", "422 E", "501 E", "500 InvalidTypeIdException")) {
      EncryptedCatalog server = refusing("add-encryption-key " + answer);
      assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of()))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", "refused a commit that adds a key", "hint:");
      assertThat(catalog.tableExists(T)).as(answer).isFalse();
      assertThat(written()).as(answer).isEqualTo(before);
    }
  }

  /** With a server that stages tables, and with one that does not. */
  private static List<Map<String, String>> stagedAndAtOnce(Map<String, String> headers) {
    Map<String, String> atOnce = new HashMap<>(headers);
    atOnce.put("header.X-Refuse", "stage-create 406 UnsupportedOperationException");
    return List.of(headers, atOnce);
  }

  private void assertNoTable(Map<String, String> server, Class<?> error, String... words)
      throws IOException {
    Set<Path> before = written();
    for (Map<String, String> headers : stagedAndAtOnce(server)) {
      EncryptedCatalog refusing = lake.open(headers);
      assertThatThrownBy(() -> TestLake.createTable(refusing, "t", Map.of()))
          .isInstanceOf(error)
          .hasMessageContainingAll("lake.db.t", "hint:")
          .hasMessageContainingAll(words);
      assertThat(catalog.tableExists(T)).isFalse();
      assertThat(written()).isEqualTo(before);
    }
  }

  private static List<Runnable> transactions(Catalog.TableBuilder builder) {
    return List.of(builder::createTransaction, builder::createOrReplaceTransaction);
  }

  /** As Nessie's does. Its tables would have no place for keys. */
  @Test
  void aServerOfAnOlderFormatGetsNoTable() throws IOException {
    Map<String, String> older = Map.of("header.X-Tell", "format-version");
    assertNoTable(older, NotSupportedException.class, "creates it with format version 2");

    Catalog.TableBuilder builder =
        lake.open(older).buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1");
    for (Runnable begin : transactions(builder)) {
      assertThatThrownBy(begin::run).hasMessageContaining("creates it with format version 2");
    }

    assertThat(lake.open(older).buildTable(T, TestLake.SCHEMA).create())
        .as("a plaintext table")
        .isNotNull();
  }

  /** Such answers do not say what was kept: no alarm, and no false one. */
  @Test
  void aServerMayLeaveTheMetadataLocationOut() throws IOException {
    EncryptedCatalog server = lake.open(Map.of("header.X-Tell", "no-location"));
    TestLake.createTable(server, "t", Map.of());
    for (long id : new long[] {1, 2}) {
      TestLake.append(server.loadTable(T), id);
    }

    assertThat(TestLake.ids(server.loadTable(T))).containsExactly(1L, 2L);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 2L);
  }

  /** Its tables would be plaintext. */
  @Test
  void aServerThatForgetsTheKeyIdGetsNoTable() throws IOException {
    Map<String, String> forgets = Map.of("header.X-Forget", "encryption.key-id");
    String told = "the catalog created it without encryption.key-id='k1'";
    assertNoTable(forgets, PlaintextException.class, told);

    Catalog.TableBuilder builder =
        lake.open(forgets).buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1");
    for (Runnable begin : transactions(builder)) {
      assertThatThrownBy(begin::run).isInstanceOf(PlaintextException.class);
    }
  }

  /** It makes the commit, and its answer does not have the commit's keys. */
  @Test
  void aServerThatDropsKeysInSilenceGetsNoTable() throws IOException {
    assertNoTable(
        Map.of("header.X-Lose", "encryption-keys"),
        NotSupportedException.class,
        "without key",
        "in encryption-keys",
        "The table was dropped again");
  }

  /** What it wrote cannot be read; the writer is told, and no file is deleted. */
  @Test
  void aServerThatDropsASnapshotsKeyIsNotTakenForOneThatKeptIt() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    for (String what : List.of("key-id", "encryption-keys")) {
      Table there = lake.open(Map.of("header.X-Lose", what)).loadTable(T);
      Set<Path> before = written();
      assertThatThrownBy(() -> TestLake.append(there, 2))
          .isInstanceOf(CommitStateUnknownException.class)
          .hasCauseInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll(
              "lake.db.t",
              "made the commit without",
              what,
              "Do not drop the table",
              "metadata.json",
              "roll back to snapshot " + first(table));
      assertThat(written()).as("nothing was deleted").containsAll(before).hasSizeGreaterThan(2);
      lake.openStock().loadTable(T).manageSnapshots().rollbackTo(first(table)).commit();
      assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
    }
  }

  /** As those on iceberg-rust: 409 is not a conflict there. */
  @Test
  void aServerThatRefusesKeyIdsGetsNoTable() throws IOException {
    Set<Path> before = written();
    EncryptedCatalog server = refusing("key-id 409 AlreadyExistsException");
    assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of()))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "creates no table with encryption.key-id", "hint:");
    assertThat(catalog.tableExists(T)).isFalse();
    assertThat(written()).isEqualTo(before);
  }

  /** What encrypt_table asks before it copies. */
  @Test
  void aTableIsNotEncryptedWhereTheServerWouldNotKeepItsKeyId() throws IOException {
    catalog.buildTable(T, TestLake.SCHEMA).create();
    Set<Path> before = everything();
    Map<Map<String, String>, String> servers =
        Map.of(
            Map.of("header.X-Refuse", "key-id 409 AlreadyExistsException"), "creates no table with",
            Map.of("header.X-Tell", "format-version"), "creates it with format version 2",
            Map.of("header.X-Forget", "encryption.key-id"), "creates tables without the");
    for (Map.Entry<Map<String, String>, String> server : servers.entrySet()) {
      EncryptedCatalog there = lake.open(server.getKey());
      assertThatThrownBy(() -> PlaintextTable.load(there, T, "k1"))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", server.getValue(), "hint:");
    }

    // nobody knows before the commit
    PlaintextTable.load(refusing("stage-create 403 ForbiddenException"), T, "k1");
    assertThat(everything()).isEqualTo(before);
    assertThat(catalog.listTables(TestLake.DB)).containsExactly(T);
  }

  private Set<Path> everything() throws IOException {
    try (Stream<Path> all =
        Files.walk(TestLake.path(catalog.loadTable(T).location()).getParent())) {
      return all.collect(Collectors.toSet());
    }
  }

  /** encrypt_table would delete its copies after a conflict. */
  @Test
  void aConflictThatIsNoneWasMade() throws IOException {
    catalog.buildTable(T, TestLake.SCHEMA).create();
    EncryptedCatalog server = refusing("key-id 409 AlreadyExistsException");
    TableMetadata base = TestLake.metadata(server.loadTable(T));
    TableMetadata next = TestLake.encrypted(catalog, T, base);
    KeyIdChange.commit(server, T, base, next);
    assertThat(catalog.loadTable(T).properties()).containsEntry("encryption.key-id", "k1");
  }

  /** The same after an answer of another kind: files of the commit may not be deleted. */
  @Test
  void aRefusalOfACommitThatWasMadeIsNone() throws IOException {
    for (String answer : List.of("403 ForbiddenException", "418 Teapot")) {
      catalog.buildTable(T, TestLake.SCHEMA).create();
      TableMetadata base = TestLake.metadata(catalog.loadTable(T));
      TableMetadata next = TestLake.encrypted(catalog, T, base);
      EncryptedCatalog refusing = refusing("add-encryption-key " + answer);
      assertThatThrownBy(() -> KeyIdChange.commit(refusing, T, base, next))
          .isInstanceOf(
              answer.startsWith("403") // another one may be a gateway's, before the server's
                  ? ForbiddenException.class
                  : CommitStateUnknownException.class)
          .hasMessageContaining("is refused here");
      EncryptedCatalog making = refusing("key-id " + answer);
      KeyIdChange.commit(making, T, base, next);
      assertThat(catalog.loadTable(T).properties()).containsEntry("encryption.key-id", "k1");
      catalog.dropTable(T, false);
    }
  }

  /** What is gone does not refuse keys. */
  @Test
  void aTableThatWasDroppedHasNotRefusedItsKey() throws IOException {
    EncryptedCatalog server = refusing("key 503 E");
    assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of())).isNotNull();
    BaseTable table = (BaseTable) catalog.loadTable(T);
    TableMetadata base = TestLake.metadata(table);
    assertThat(base.encryptionKeys()).isEmpty();
    TableMetadata next =
        TableMetadata.buildFrom(base).setProperties(Map.of("owner", "sales")).build();
    lake.openStock().dropTable(T, false);
    assertThatThrownBy(() -> table.operations().commit(base, next))
        .isInstanceOf(NoSuchTableException.class);
  }

  private static long first(Table table) {
    return table.history().get(0).snapshotId();
  }

  /** Neither this nor that: the table is made, and taken back. */
  @Test
  void aTableIsTakenBackWhoseKeyIsRefused() throws IOException {
    Set<Path> before = written();
    for (String answer :
        List.of("400 BadRequestException", "406 E", "403 E", "500 InvalidTypeIdException")) {
      EncryptedCatalog server = refusing("both " + answer);
      assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of())).isNotNull();
      assertThat(catalog.tableExists(T)).as(answer).isFalse();
      assertThat(written()).as(answer).isEqualTo(before);
    }
  }

  @Test
  void aTableStaysWhoseKeyMayBeThere() throws IOException {
    EncryptedCatalog server = refusing("key 503 E");
    assertThatThrownBy(() -> TestLake.createTable(server, "t", Map.of()))
        .isInstanceOf(CommitStateUnknownException.class);
    Table table = catalog.loadTable(T);
    assertThat(table.properties()).containsEntry("encryption.key-id", "k1");
    assertThat(keys(table)).isZero();
    table.updateProperties().set("a", "b").commit();
    assertThat(keys(table)).as("the next commit adds it").isEqualTo(1);
    lake.openStock().loadTable(T).updateProperties().remove("encryption.key-id").commit();
    assertThatThrownBy(() -> TestLake.append(lake.open(Map.of()).loadTable(T), 1))
        .isInstanceOf(TamperedException.class);
  }
}
