package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertSame;

import com.sun.management.ThreadMXBean;
import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.integrity.MetadataAuthenticationTest;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.Map;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A catalog that allows some master keys only, on each. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "REST", "HIVE"})
class AllowedKeysOfTablesTest extends LakeFixture {
  private static final String ALLOWED = "encryption.allowed-key-ids";

  private EncryptedCatalog onlyK1() throws IOException {
    return lake.open(Map.of(ALLOWED, "k1, other-*"));
  }

  private static void assertRefused(ThrowingCallable operation, String keyId) {
    assertThatThrownBy(operation)
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContainingAll("lake.db.t", "encryption.key-id is '" + keyId + "'", "k1, other-*")
        .hasMessageContaining(ALLOWED);
  }

  @Test
  void anotherKeyIsRefusedBeforeTheKmsIsAsked() throws IOException {
    EncryptedCatalog limited = onlyK1();
    Catalog.TableBuilder builder =
        limited.buildTable(T, TestLake.SCHEMA).withProperty("encryption.key-id", "k2");
    assertRefused(builder::create, "k2");
    assertRefused(builder::createTransaction, "k2");
    assertRefused(builder::createOrReplaceTransaction, "k2");
    assertThat(limited.context().kms().metrics().wrapCalls()).isZero();
    assertThat(limited.tableExists(T)).isFalse();

    Table table = TestLake.append(TestLake.createTable(limited, "t", Map.of()), 1);
    assertThat(TestLake.ids(limited.loadTable(T))).containsExactly(1L);
    limited.createTable(TableIdentifier.of(TestLake.DB, "plain"), TestLake.SCHEMA);
    limited.close();
  }

  /** Iceberg asks for it once for each ancestor of a snapshot: told by the memory that it takes. */
  @Test
  void metadataIsCheckedOnce() throws IOException {
    try (EncryptedCatalog limited = onlyK1()) {
      Table table = TestLake.createTable(limited, "t", Map.of());
      for (long id = 0; id < 5; id++) {
        TestLake.append(table, id);
      }

      TableMetadata metadata = TestLake.metadata(table);
      assertThat(metadata.encryptionKeys()).hasSize(6);
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 1000; i++) {
        assertSame(metadata, TestLake.metadata(table));
      }

      long each = (threads.getCurrentThreadAllocatedBytes() - before) / 1000;
      assertThat(each).as("bytes for each time").isLessThan(500);
    }
  }

  @Test
  void aTableWithAnotherKeyIsNeitherReadNorWrittenNorReplaced() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of("encryption.key-id", "k2"));
    TestLake.append(table, 1);
    int files = TestLake.files(table).size();
    EncryptedCatalog limited = onlyK1();
    assertRefused(() -> TestLake.ids(limited.loadTable(T)), "k2");
    assertRefused(() -> TestLake.append(limited.loadTable(T), 2), "k2");
    assertRefused(
        () -> limited.loadTable(T).updateProperties().set("owner", "someone").commit(), "k2");
    assertRefused(
        () -> TestLake.ids(limited.loadTable(TableIdentifier.of("db", "t", "files"))), "k2");
    assertRefused(() -> limited.buildTable(T, TestLake.SCHEMA).replaceTransaction(), "k2");
    assertRefused(() -> limited.dropTable(T, true), "k2");
    assertRefused(() -> limited.context().purgeWithoutKey(T, true), "k2");
    if (limited.context().authenticatesMetadata()) {
      String file = TestLake.metadata(table).metadataFileLocation();
      String sha256 = MetadataAuthenticationTest.sha256(TestLake.path(file));
      assertRefused(() -> limited.context().authenticateMetadata(T, file, sha256), "k2");
    }

    assertThat(limited.context().kms().metrics().unwrapCalls()).isZero();
    assertThat(limited.context().kms().metrics().wrapCalls()).isZero();
    assertThat(TestLake.files(table)).hasSize(files);
    assertThat(limited.dropTable(T, false)).as("that needs no key").isTrue();
    limited.close();
  }

  @Test
  void aTableWithAnotherKeyIsNotRegistered() throws IOException {
    TestLake.append(TestLake.createTable(catalog, "s", Map.of("encryption.key-id", "k2")), 1);
    TableIdentifier source = TableIdentifier.of(TestLake.DB, "s");
    String file = TestLake.metadata(catalog.loadTable(source)).metadataFileLocation();
    EncryptedCatalog limited = onlyK1();
    assertRefused(() -> limited.registerTable(T, file), "k2");
    assertRefused(() -> limited.registerTable(T, file, true), "k2");
    assertThat(limited.context().kms().metrics().unwrapCalls()).isZero();
    assertThat(limited.tableExists(T)).isFalse();
    limited.close();
  }

  @Test
  void aCatalogWhoseNewTablesCouldNotBeMadeDoesNotStart() {
    for (String prefix : new String[] {"table-default.", "table-override."}) {
      assertThatThrownBy(() -> lake.open(Map.of(ALLOWED, "k1", prefix + "encryption.key-id", "k2")))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll(prefix + "encryption.key-id is 'k2'", ALLOWED);
    }
  }
}
