package io.icebergcrypto.lifecycle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.MasterKeyUse;
import io.icebergcrypto.audit.diagnosis.EncryptionKeys;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.DownKms;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.PlainKms;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A table moves to a master key of another KMS; the former one is not needed then. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP", "HIVE"})
class OtherKmsTest extends LakeFixture {
  private TestKeystore other;

  @BeforeEach
  void makeOtherKeystore() throws IOException {
    this.other = TestKeystore.create(Files.createDirectory(folder.resolve("other")), "k1", "k3");
  }

  private MasterKeyRotation move(String newKeyId, boolean dryRun) throws IOException {
    try (EncryptedCatalog moved = lake.open(other.properties())) {
      return MasterKeyRotation.run(moved, T, newKeyId, catalog.context().kms(), dryRun);
    }
  }

  private String metadataFile() throws IOException {
    return TestLake.metadata(lake.openStock().loadTable(T)).metadataFileLocation();
  }

  private Table create() {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    KekRotation.run(catalog, T, false, false);
    table.refresh();
    TestLake.append(table, 2);
    table.manageSnapshots().createTag("first", table.history().get(0).snapshotId()).commit();
    return table;
  }

  private void assertMoved(String keyId) throws IOException {
    TestKeystore.existing(folder).delete("k1");
    try (EncryptedCatalog moved = lake.open(other.properties())) {
      Table table = moved.loadTable(T);
      TableProcess.checkReachable(table);
      for (Snapshot snapshot : table.snapshots()) {
        assertThat(TestLake.ids(table, snapshot.snapshotId())).isNotEmpty();
      }

      TestLake.append(table, 3);
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L, 3L);
      assertThat(EncryptionKeys.of(moved, T).keys()).allMatch(key -> key.problem() == null);
      assertThat(MasterKeyUse.of(moved, T).keks())
          .allMatch(kek -> kek.masterKeyId().equals(keyId) && kek.version() == 1);
      assertThat(table.properties()).containsEntry("encryption.key-id", keyId);
    }
  }

  @Test
  void anotherKeyOfAnotherKms() throws IOException {
    create();
    String before = metadataFile();
    assertThat(move("k3", true).committed()).isFalse();
    assertThat(metadataFile()).isEqualTo(before);
    MasterKeyRotation done = move("k3", false);
    assertThat(done.oldKeyId()).isEqualTo("k1");
    assertThat(done.newKeyId()).isEqualTo("k3");
    assertThat(done.keks()).isEqualTo(backend == Backend.HIVE ? 1 : 2);
    move("k3", false); // a second time is no harm
    assertMoved("k3");
  }

  @Test
  void aKeyOfTheSameName() throws IOException {
    create();
    move(null, false);
    assertThatThrownBy(() -> read(lake.open(Map.of())))
        .as("the former KMS does not unwrap")
        .isInstanceOf(AssertionError.class);
    assertMoved("k1");
  }

  /** One that another client made has no KEK, and what the new KMS wraps is its own. */
  @Test
  void anEmptyTableMovesWithoutTheFormerKms() throws IOException {
    assumeTrue(backend == Backend.HIVE, "stock Iceberg makes no encrypted table there");

    Catalog stock = lake.openStockWithKeys();
    TestLake.createTable(stock, "t", Map.of("format-version", "3"));
    ((Closeable) stock).close();
    Map<String, String> off =
        Map.of(
            "encryption.kms-impl",
            DownKms.class.getName(),
            "encryption.kms.retry.max-attempts",
            "1");
    try (EncryptedCatalog moved = lake.open(other.properties());
        CachingKmsClient former = KmsClients.create(off)) {
      MasterKeyRotation done = MasterKeyRotation.run(moved, T, "k3", former, false);
      assertThat(done.kmsCalls()).as("a KEK is wrapped, and unwrapped again").isEqualTo(2);
      Table table = TestLake.append(moved.loadTable(T), 1);
      assertThat(TestLake.ids(table)).containsExactly(1L);
      assertThat(MasterKeyUse.of(moved, T).keks())
          .extracting(MasterKeyUse.WrappedBy::masterKeyId)
          .containsExactly("k3");
    }
  }

  private static void read(EncryptedCatalog former) {
    try {
      assertThat(TestLake.ids(former.loadTable(T))).isEmpty();
    } catch (IcebergCryptoException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void whatCannotBeMovedStaysAsItIs() throws IOException {
    create();
    String before = metadataFile();
    EncryptedCatalog limited = // to one of the keys
        lake.open(with(other.properties(), "encryption.allowed-key-ids", "k3"));
    assertThatThrownBy(
            () -> MasterKeyRotation.run(limited, T, "k3", catalog.context().kms(), false))
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("'k1'");
    EncryptedCatalog moved = lake.open(other.properties());
    assertThatThrownBy(
            () -> MasterKeyRotation.run(moved, T, "none", catalog.context().kms(), false))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("lake.db.t");
    assertThatThrownBy(() -> MasterKeyRotation.run(moved, T, " ", catalog.context().kms(), false))
        .isInstanceOf(InvalidConfigurationException.class);
    assertThatThrownBy(() -> MasterKeyRotation.run(moved, T, "k3", moved.context().kms(), false))
        .as("a KMS that never had the table")
        .isInstanceOf(BadWrappedKeyException.class)
        .hasMessageContaining("lake.db.t");
    if (backend != Backend.HIVE) {
      Map<String, String> anybodys = Map.of("encryption.kms-impl", PlainKms.class.getName());
      EncryptedCatalog former = new TestLake(backend, folder, anybodys).open(Map.of());
      assertThatThrownBy(() -> MasterKeyRotation.run(moved, T, "k3", former.context().kms(), false))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContaining("cannot be authenticated");
    }

    assertThat(metadataFile()).isEqualTo(before);
    assertThat(TestLake.ids(catalog.loadTable(T))).containsExactly(1L, 2L);
  }

  @Test
  void metadataThatIsNotGenuineIsNotMoved() throws IOException {
    assumeTrue(backend != Backend.HIVE, "server or metastore vouch for it");

    create();
    lake.openStock().loadTable(T).updateProperties().set("a", "b").commit();
    assertThatThrownBy(() -> move("k3", false))
        .isInstanceOf(TamperedException.class)
        .hasMessageContainingAll("lake.db.t", "its metadata is refused");
  }

  private static Map<String, String> with(Map<String, String> all, String key, String value) {
    Map<String, String> more = new HashMap<>(all);
    more.put(key, value);
    return more;
  }
}
