package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.iceberg.CatalogUtil;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.rest.RESTCatalog;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Metadata files that are registered, over a table (which of these only the REST server does) and
 * under a new name.
 */
@ParameterizedClass
@EnumSource(names = {"JDBC", "REST"})
class RegistrationTest extends LakeFixture {
  private static final TableIdentifier COPY = TableIdentifier.of(TestLake.DB, "copy");
  private static final String KEY_ID = "encryption.key-id";

  @Override
  protected Map<String, String> properties() {
    return backend == Backend.REST
        ? Map.of()
        : Map.of(EncryptionProperties.METADATA_AUTHENTICATION, "off");
  }

  private static String file(Table table) {
    return TestLake.metadata(table).metadataFileLocation();
  }

  /** A metadata file made of a table's. */
  private String edited(Table table, UnaryOperator<TableMetadata.Builder> edit) throws IOException {
    TableMetadata metadata =
        edit.apply(TableMetadata.buildFrom(TestLake.metadata(table))).discardChanges().build();
    Path file = Files.createTempFile(folder, "00009-", ".metadata.json");
    Files.writeString(file, TableMetadataParser.toJson(metadata));
    return file.toString();
  }

  private static TableMetadata.Builder withoutTrace(TableMetadata.Builder builder, Table table) {
    TableMetadata metadata = TestLake.metadata(table);
    metadata.snapshots().forEach(snapshot -> builder.removeSnapshots(List.of(snapshot)));
    metadata.encryptionKeys().forEach(key -> builder.removeEncryptionKey(key.keyId()));
    return builder.removeProperties(Set.of(KEY_ID));
  }

  @Test
  void anEncryptedTableIsReplacedByItsOwnMetadataOnly() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    String earlier = file(table);
    TestLake.append(table, 2);
    Table plain = catalog.createTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA);
    Table other = TestLake.createTable(catalog, "other", Map.of());
    List<String> refused =
        new ArrayList<>(
            List.of(
                file(plain),
                file(other),
                edited(table, metadata -> withoutTrace(metadata, table)),
                edited(table, metadata -> metadata.setProperties(Map.of(KEY_ID, "k2")))));
    for (String file : refused) {
      assertThatThrownBy(() -> catalog.registerTable(T, file, true))
          .isInstanceOf(NotSupportedException.class)
          .hasMessageContainingAll("lake.db.t", file, "hint: Register it under another name")
          .hasMessageNotContainingAny("decrypt_table", "rotate_master_key");
    }

    assertThatThrownBy(() -> catalog.registerTable(T, earlier + ".absent", true))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("lake.db.t", "cannot be read", "encrypted table is replaced");
    assertThat(TestLake.ids(lake.open(Map.of()).loadTable(T))).containsExactly(1L, 2L);

    if (backend == Backend.REST) {
      assertThat(TestLake.ids(catalog.registerTable(T, earlier, true))).containsExactly(1L);
      Catalog stock = lake.openStock();
      stock.loadTable(T).updateProperties().remove(KEY_ID).commit();
      assertThatThrownBy(() -> catalog.registerTable(T, refused.get(0), true))
          .as("it was encrypted")
          .isInstanceOf(NotSupportedException.class);
      assertThat(TestLake.ids(catalog.registerTable(T, earlier, true))).containsExactly(1L);
      stock.registerTable(T, refused.get(0), true);
      assertThat(catalog.loadTable(T).properties())
          .as("the control: the server does it")
          .doesNotContainKey(KEY_ID);
    }
  }

  /** A server that reads another file than the client looked at. */
  public static final class Exchanging extends RESTCatalog {
    /** What gets into the file. */
    static volatile String exchanged;

    @Override
    public Table registerTable(TableIdentifier identifier, String file, boolean overwrite) {
      try {
        Files.copy(Path.of(exchanged), Path.of(file), StandardCopyOption.REPLACE_EXISTING);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }

      return super.registerTable(identifier, file, overwrite);
    }
  }

  @Test
  void aFileThatIsExchangedWhileItIsRegisteredIsFound() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    String right = edited(table, metadata -> metadata);
    if (backend != Backend.REST) { // no other replaces a table
      assertThatThrownBy(() -> catalog.registerTable(T, right, true))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("with overwrite is not supported");
      return;
    }

    Exchanging.exchanged = edited(table, metadata -> withoutTrace(metadata, table));
    Map<String, String> all = new HashMap<>(backend.encrypted(folder));
    all.putAll(
        TestKeystore.create(Files.createDirectory(folder.resolve("again")), "k1").properties());
    all.remove(EncryptedCatalog.CATALOG_TYPE);
    all.put(EncryptedCatalog.CATALOG_IMPL, Exchanging.class.getName());
    try (EncryptedCatalog exchanging =
        (EncryptedCatalog) CatalogUtil.buildIcebergCatalog("lake", all, null)) {
      assertThatThrownBy(() -> exchanging.registerTable(T, right, true))
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll(
              "lake.db.t", "was replaced while it was registered", right, file(table));
    }
  }

  @Test
  void aFileWhoseEncryptionIsNotRightIsRefused() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    String lost = edited(table, metadata -> metadata.removeProperties(Set.of(KEY_ID)));
    assertThatThrownBy(() -> catalog.registerTable(COPY, lost))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.copy", lost, "it was 'k1'", "earlier metadata file")
        .hasMessageContaining("lacks the commits since");
    String stripped =
        edited(
            table,
            metadata -> {
              List<EncryptedKey> keys = TestLake.metadata(table).encryptionKeys();
              keys.forEach(key -> metadata.removeEncryptionKey(key.keyId()));
              return metadata.removeProperties(Set.of(KEY_ID));
            });
    assertThatThrownBy(() -> catalog.registerTable(COPY, stripped))
        .as("the key of its snapshot tells")
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.copy", stripped, "earlier metadata file")
        .message()
        .doesNotContain("null");
    for (Map.Entry<String, String> bad :
        Map.of(
                "encryption.data-key-length",
                "17",
                KEY_ID,
                " ",
                "encryption.kms-type",
                "keystore",
                "encryption.keyid",
                "k1")
            .entrySet()) {
      Map<String, String> property = Map.of(bad.getKey(), bad.getValue());
      String file = edited(table, metadata -> metadata.setProperties(property));
      assertThatThrownBy(() -> catalog.registerTable(COPY, file))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("lake.db.copy", bad.getKey());
    }

    assertThat(catalog.tableExists(COPY)).isFalse();
    assertThat(TestLake.ids(catalog.registerTable(COPY, file(table)))).containsExactly(1L);
  }

  @Test
  void aTableIsNotRenamedOverAnEncryptedOne() {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    TableIdentifier plain = TableIdentifier.of(TestLake.DB, "plain");
    catalog.createTable(plain, TestLake.SCHEMA);
    assertThatThrownBy(() -> catalog.renameTable(plain, T))
        .isInstanceOf(AlreadyExistsException.class);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
  }

  /** Nobody may take a table that lost its key id for a plaintext one, and replace it as one. */
  @Test
  void aTableThatLostItsKeyIdIsNotReplaced() throws IOException {
    TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    lake.openStock().loadTable(T).updateProperties().remove(KEY_ID).commit();
    for (Map<String, String> properties : List.of(Map.of(KEY_ID, "k1"), Map.<String, String>of())) {
      Catalog fresh = lake.open(Map.of());
      assertThatThrownBy(
              () ->
                  fresh
                      .buildTable(T, TestLake.SCHEMA)
                      .withProperties(properties)
                      .replaceTransaction()
                      .commitTransaction())
          .as("%s", properties)
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll("lake.db.t", "puts it back");
    }
  }

  /** As at three in the morning: following the hint loses nothing. */
  @Test
  void anUnsignedMetadataFileIsNoReasonToDropATable() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    Map<String, String> signs =
        backend == Backend.REST
            ? Map.of()
            : Map.of(EncryptionProperties.METADATA_AUTHENTICATION, "require");
    try (EncryptedCatalog strict = lake.open(signs)) {
      Table byPath = strict.byPath().loadTable(TableIdentifier.of(file(table)));
      assertThatThrownBy(byPath::schema)
          .isInstanceOf(TamperedException.class)
          .hasMessageContainingAll("has no encryption.metadata-mac", "read the table by its name")
          .hasMessageNotContainingAny("drop", "CALL", "estore");
      if (backend != Backend.REST) { // a server registers what it likes
        assertThatThrownBy(() -> strict.registerTable(COPY, file(table)))
            .isInstanceOf(TamperedException.class)
            .hasMessageContainingAll("Nothing was registered", "CALL lake.system.authenticate")
            .hasMessageNotContainingAny("drop", "estore");
        assertThatThrownBy(() -> strict.loadTable(T).schema())
            .isInstanceOf(TamperedException.class)
            .hasMessageContainingAll("restore the file from a backup", "do not drop the table");
      }
    }

    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L);
  }
}
