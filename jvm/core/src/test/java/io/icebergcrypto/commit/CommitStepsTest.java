package io.icebergcrypto.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.CatalogSettings;
import io.icebergcrypto.integrity.MetadataAuthenticator;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Commits of metadata without the keys of its snapshots, as Iceberg 1.11 makes it. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class CommitStepsTest extends LakeFixture {
  private Table table;

  private TableMetadata prepared(List<EncryptedKey> known) {
    TableMetadata whole = TestLake.metadata(table);
    Snapshot snapshot = whole.currentSnapshot();
    TableMetadata created =
        TableMetadata.buildFrom(
                TestLake.metadata(
                    table.location(), Map.of("encryption.key-id", "k1", "format-version", "3")))
            .setBranchSnapshot(snapshot, "main")
            .build();
    TableKeys keys =
        new TableKeys(
            "lake.db.t",
            (name, none, keyId, length, kms) ->
                new TableEncryptionManager(name, known, keyId, length, kms),
            () -> catalog.context().kms());
    return new CommitSteps(
            keys,
            new CatalogSettings(new TreeMap<>(String.CASE_INSENSITIVE_ORDER)),
            MetadataAuthenticator.off(() -> null),
            () -> catalog.context().kms(),
            false,
            true)
        .prepare(null, created, manager -> table.io())
        .metadata();
  }

  /** A KEK of its own, too, would have to be unwrapped by each session. */
  @Test
  void aTableThatIsCreatedWithRowsHasOneKek() {
    this.table = TestLake.createTable(catalog, 1);
    List<EncryptedKey> known = TestLake.metadata(table).encryptionKeys();
    TableMetadata prepared = prepared(known);
    assertThat(Kek.all(prepared)).hasSize(1);
    assertThat(prepared.encryptionKeys()).hasSameSizeAs(known);
  }

  @Test
  void aSnapshotWhoseKeyNobodyKnowsIsNotCommitted() {
    this.table = TestLake.createTable(catalog, 1);
    for (EncryptedKey lost : TestLake.metadata(table).encryptionKeys()) {
      List<EncryptedKey> known = new ArrayList<>(TestLake.metadata(table).encryptionKeys());
      known.remove(lost);
      assertThatThrownBy(() -> prepared(known))
          .isExactlyInstanceOf(IcebergCryptoException.class)
          .hasMessageContainingAll("lake.db.t", lost.keyId(), "Nothing was committed");
    }
  }

  /** On REST, a replacement sets the key id that it began with, whatever was committed since. */
  @Test
  void aRotationThatAReplacementHasUndoneIsSeen() {
    this.table = TestLake.createTable(catalog, 1);
    TableMetadata before = TestLake.metadata(table);
    TableMetadata.Builder undone = TableMetadata.buildFrom(before);
    for (EncryptedKey kek : Kek.all(before)) {
      undone.removeEncryptionKey(kek.keyId());
      undone.addEncryptionKey(
          new BaseEncryptedKey(kek.keyId(), kek.encryptedKeyMetadata(), "k2", kek.properties()));
    }

    TableMetadata now = undone.build();
    assertThat(StaleReplacement.undoneKeyId(before, now)).isEqualTo("k2");
    assertThat(StaleReplacement.undoneKeyId(before, before)).isNull();
    TableMetadata rotated =
        TableMetadata.buildFrom(now).setProperties(Map.of("encryption.key-id", "k2")).build();
    assertThat(StaleReplacement.undoneKeyId(before, rotated)).isNull();
    assertThat(StaleReplacement.undoneKeyId(rotated, rotated)).isNull();
  }

  /** Statistics whose KEK was lost before would stop all commits of the table. */
  @Test
  void onlyNewStatisticsNeedTheirKek() {
    this.table = TestLake.createTable(catalog, 1);
    TableMetadata whole = TestLake.metadata(table);
    EncryptedKey lost =
        new BaseEncryptedKey(
            "lost", ByteBuffer.allocate(16), "gone", Map.of("statistics-path", "file:/1.stats"));
    EncryptedKey foreign = new BaseEncryptedKey("foreign", ByteBuffer.allocate(16), null, Map.of());
    long snapshot = whole.currentSnapshot().snapshotId();
    TableMetadata added =
        TableMetadata.buildFrom(whole)
            .addEncryptionKey(lost)
            .addEncryptionKey(foreign)
            .setStatistics(new GenericStatisticsFile(snapshot, "file:/1.stats", 1, 1, List.of()))
            .build();
    TableEncryptionManager manager =
        new TableEncryptionManager(
            "lake.db.t", added.encryptionKeys(), "k1", 16, catalog.context().kms());
    assertThatThrownBy(() -> KeyRetention.withMissing(added, () -> manager))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("lake.db.t", "file:/1.stats", "gone", "Nothing was committed");
    TableMetadata old =
        TableMetadata.buildFrom(added).discardChanges().withMetadataLocation("file:/m").build();
    TableMetadata next = TableMetadata.buildFrom(old).setProperties(Map.of("a", "b")).build();
    assertThat(KeyRetention.withMissing(next, () -> manager)).isSameAs(next);
  }
}
