package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.lifecycle.KeyIdChange;
import io.icebergcrypto.lifecycle.encrypt.PlaintextTable;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.MotoServer;
import io.icebergcrypto.testing.NessieServer;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Nessie's own REST endpoint. It knows no format version 3 and no keys: nothing is encrypted there,
 * and nothing is written for it.
 */
class NessieRestTest {
  private static final String BUCKET = "nessie";
  private static final TableIdentifier T = TableIdentifier.of(TestLake.DB, "t");
  private static String uri;

  @TempDir Path folder;
  private EncryptedCatalog catalog;

  @BeforeEach
  void open() throws Exception {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    assumeTrue(NessieServer.isAvailable(), "Nessie's server needs a JDK of 21 or later");
    if (uri == null) {
      ask("PUT", "");
      uri = NessieServer.start(settings(MotoServer.uri()));
    }

    this.catalog = open(Map.of("encryption.catalog-type", "rest", "uri", uri + "/iceberg"));
    catalog.createNamespace(TestLake.DB);
  }

  private static Map<String, String> settings(String s3) {
    String options = "nessie.catalog.service.s3.default-options.";
    return Map.of(
        "nessie.catalog.default-warehouse",
        "lake",
        "nessie.catalog.warehouses.lake.location",
        "s3://" + BUCKET + "/warehouse",
        options + "endpoint",
        s3,
        options + "path-style-access",
        "true",
        options + "region",
        "us-east-1",
        options + "request-signing-enabled",
        "false",
        options + "access-key",
        "urn:nessie-secret:quarkus:login",
        "login.name",
        "AKIAONLYFORTESTS0001",
        "login.secret",
        "aws-secret-only-for-tests");
  }

  private EncryptedCatalog open(Map<String, String> more) throws IOException {
    Map<String, String> all = new HashMap<>(TestKeystore.create(folder, "k1").properties());
    all.put("catalog-impl", EncryptedCatalog.class.getName());
    all.putAll(more);
    return (EncryptedCatalog) CatalogUtil.buildIcebergCatalog("lake", all, new Configuration());
  }

  @AfterEach
  void empty() throws IOException {
    if (catalog != null) {
      catalog.listTables(TestLake.DB).forEach(table -> catalog.dropTable(table, false));
      catalog.dropNamespace(TestLake.DB);
      catalog.close();
    }
  }

  /** moto refuses objects to those without a signature, and checks none. */
  private static String ask(String method, String path) throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(MotoServer.uri() + "/" + BUCKET + path))
            .header("Authorization", "signed here")
            .method(method, HttpRequest.BodyPublishers.noBody())
            .build();
    HttpResponse<String> answer =
        HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
    return answer.body();
  }

  /** The names of all objects in the bucket. */
  private static List<String> objects() throws Exception {
    return Pattern.compile("<Key>([^<]*)</Key>")
        .matcher(ask("GET", "?list-type=2"))
        .results()
        .map(found -> found.group(1))
        .toList();
  }

  @Test
  void noEncryptedTableIsMade() throws Exception {
    List<String> before = objects();
    assertThatThrownBy(() -> TestLake.createTable(catalog, "t", Map.of()))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "creates it with format version 2", "hint:");
    Catalog.TableBuilder builder =
        catalog.buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k1");
    for (Runnable begin :
        List.<Runnable>of(builder::createTransaction, builder::createOrReplaceTransaction)) {
      assertThatThrownBy(begin::run).isInstanceOf(NotSupportedException.class);
    }

    assertThat(catalog.tableExists(T)).isFalse();
    assertThat(objects()).isEqualTo(before);
  }

  /** What encrypt_table asks first, and its commit. */
  @Test
  void noTableIsEncryptedInPlace() throws Exception {
    Table table = TestLake.append(catalog.buildTable(T, TestLake.SCHEMA).create(), 1);
    TableMetadata base = TestLake.metadata(table);
    TableMetadata next = TestLake.encrypted(catalog, T, base);
    List<String> before = objects();
    assertThatThrownBy(() -> PlaintextTable.load(catalog, T, "k1"))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "creates it with format version 2");
    assertThatThrownBy(() -> KeyIdChange.commit(catalog, T, base, next))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContainingAll("lake.db.t", "refused a commit that adds a key", "hint:")
        .hasMessageNotContaining("Cannot determine");
    assertThat(objects()).isEqualTo(before);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
  }

  /** Nessie takes the file unread, and has no table that it could load then. */
  @Test
  void aRegisteredTableIsNotLost() throws Exception {
    EncryptedCatalog home = onJdbc();
    Table table = TestLake.append(TestLake.createTable(home, "t", Map.of()), 1);
    List<String> before = objects();
    String file = TestLake.metadata(table).metadataFileLocation();
    assertThatThrownBy(() -> catalog.registerTable(T, file)).hasMessageContaining("version 3");
    assertThat(catalog.dropTable(T, false)).isTrue();
    assertThat(objects()).isEqualTo(before);
    assertThat(TestLake.ids(home.loadTable(T))).containsExactly(1L);
    home.close();
  }

  /** Where the table is at home. */
  private EncryptedCatalog onJdbc() throws IOException {
    return open(
        Map.of(
            "encryption.catalog-type", "jdbc",
            "uri", "jdbc:sqlite:" + folder.resolve("catalog.db"),
            "jdbc.schema-version", "V1",
            "warehouse", "s3://" + BUCKET + "/other",
            "io-impl", "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint", MotoServer.uri(),
            "s3.path-style-access", "true",
            "client.region", "us-east-1"));
  }
}
