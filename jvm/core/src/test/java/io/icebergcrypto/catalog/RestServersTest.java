package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.SerializableTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableCommit;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.NotAuthorizedException;
import org.apache.iceberg.rest.RESTCatalog;
import org.apache.iceberg.util.SerializationUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** REST servers with a login, with credentials for each table, and that plan scans themselves. */
@ParameterizedClass
@EnumSource(names = "REST")
class RestServersTest extends LakeFixture {
  private static final TableIdentifier OTHER = TableIdentifier.of(TestLake.DB, "other");
  private static final Map<String, String> SECURED = Map.of("header.X-Require", "token");

  @Test
  void aLoginByOAuth2() throws IOException {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    String tokens = Backend.restUri() + "/v1/oauth/tokens";

    assertThatThrownBy(() -> lake.open(SECURED))
        .isInstanceOf(NotAuthorizedException.class)
        .hasMessageContaining("no token of this server");
    Map<String, String> login =
        Map.of(
            "header.X-Require", "token",
            "rest.auth.type", "oauth2",
            "oauth2-server-uri", tokens,
            "credential", "user:secret-only-for-tests");
    try (EncryptedCatalog loggedIn = lake.open(login)) {
      Table table = TestLake.append(loggedIn.loadTable(T), 2);
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
      assertThat(loggedIn.toString()).doesNotContain("secret-only-for-tests");
      // Iceberg's REST catalog gives all its properties to the FileIO, which travels (engines.md)
      assertThat(table.io().properties()).containsEntry("credential", "user:secret-only-for-tests");
    }
  }

  /** Its FileIO has the table's own, and hands them on to executors, which need them. */
  @Test
  void credentialsForEachTable() throws IOException {
    TestLake.createTable(catalog, "t", Map.of());
    TestLake.createTable(catalog, "other", Map.of());
    try (EncryptedCatalog vended = lake.open(Map.of("header.X-Vend", "vended"))) {
      Table table = vended.loadTable(T);
      Table other = vended.loadTable(OTHER);
      TestLake.append(table, 1);
      table.refresh();

      assertThat(TestLake.ids(table)).containsExactly(1L);
      assertThat(table.io().properties()).containsEntry("s3.secret-access-key", "vended-t");
      assertThat(other.io().properties()).containsEntry("s3.secret-access-key", "vended-other");
      assertThat(table.properties()).doesNotContainValue("vended-t");
      assertThat(table.toString() + table.io() + table.encryption()).doesNotContain("vended-t");
      assertThat(bytes(table)).contains("vended-t").doesNotContain("vended-other");
    }
  }

  /** Iceberg's REST client can; this catalog offers what Spark asks for, a table at a time. */
  @Test
  void aCommitOfSeveralTablesByAStockClient() throws IOException {
    Table one = TestLake.createTable(catalog, "t", Map.of());
    TestLake.createTable(catalog, "other", Map.of());
    TestLake.append(one, 1);
    try (RESTCatalog stock = (RESTCatalog) lake.openStock()) {
      stock.commitTransaction(withOwner(stock, T), withOwner(stock, OTHER));
      assertThat(catalog.loadTable(OTHER).properties()).containsEntry("owner.team", "b");
      one.refresh();
      TestLake.append(one, 2);
      assertThat(TestLake.ids(one)).containsExactly(1L, 2L);

      TableMetadata old = TestLake.metadata(stock.loadTable(OTHER));
      TableMetadata plain =
          TableMetadata.buildFrom(old).removeProperties(Set.of("encryption.key-id")).build();
      stock.commitTransaction(withOwner(stock, T), TableCommit.create(OTHER, old, plain));
      assertThatThrownBy(() -> TestLake.append(catalog.loadTable(OTHER), 1))
          .isInstanceOf(TamperedException.class)
          .hasMessageContaining("encryption.key-id");
    }
  }

  private static TableCommit withOwner(RESTCatalog stock, TableIdentifier name) {
    TableMetadata old = TestLake.metadata(stock.loadTable(name));
    return TableCommit.create(
        name, old, TableMetadata.buildFrom(old).setProperties(Map.of("owner.team", "b")).build());
  }

  @Test
  void aServerThatPlansScansIsRefusedForEncryptedTables() throws IOException {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    try (EncryptedCatalog planned = lake.open(Map.of("scan-planning-mode", "server"))) {
      Table table = planned.loadTable(T);
      TestLake.append(table, 2); // the client's business alone

      assertThatThrownBy(table::newScan)
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", "scan-planning-mode=client");
      assertThatThrownBy(table::newBatchScan).isInstanceOf(NotSupportedException.class);
    }

    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 2L);
  }

  /** What travels to executors. */
  private static String bytes(Table table) {
    byte[] bytes = SerializationUtil.serializeToBytes(SerializableTable.copyOf(table));
    return new String(bytes, StandardCharsets.ISO_8859_1);
  }
}
