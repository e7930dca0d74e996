package io.icebergcrypto.cleanup;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.exceptions.ForbiddenException;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.io.FileInfo;
import org.apache.iceberg.io.InputFile;
import org.assertj.core.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A storage that gives the metadata and denies the manifest lists. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP"})
class DeniedStorageTest extends LakeFixture {
  @Test
  void whatWasNotDoneIsSaid() throws IOException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    TestLake.append(table, 2);
    String list = table.currentSnapshot().manifestListLocation();
    List<?> files = TestLake.files(table);
    try (EncryptedCatalog denied = lake.open(Map.of("io-impl", NoLists.class.getName()))) {
      assertRefused(() -> denied.dropTable(T, true), "Nothing was dropped", "without PURGE");
      assertRefused(
          () -> denied.context().checkPurge(T, null), "Nothing was dropped", "without PURGE");
      assertRefused(
          () -> denied.context().checkPurge(T, new Executors(1)),
          "Nothing was dropped",
          "without PURGE");
      assertRefused(
          () -> denied.context().checkPurge(T, new Executors(2)),
          "Nothing was dropped",
          "without PURGE");
      assertRefused(
          () -> denied.context().purgeWithoutKey(T, true), "Nothing was dropped", "without PURGE");
      Table expiring = denied.loadTable(T);
      long first = expiring.history().get(0).snapshotId();
      assertRefused(
          () -> expiring.expireSnapshots().expireSnapshotId(first).commit(),
          "No snapshot was expired");
    }

    Table after = lake.open(Map.of()).loadTable(T);
    assertThat(TestLake.ids(after)).containsExactly(1L, 2L);
    assertThat(after.snapshots()).hasSize(2);
    assertThat(after.currentSnapshot().manifestListLocation()).isEqualTo(list);
    assertThat(TestLake.files(table)).hasSameSizeAs(files);
  }

  /** Executors that can read no list; the caller reads few itself. */
  private record Executors(int few) implements ManifestListCheck {
    @Override
    public boolean takes(int lists) {
      return lists > few;
    }

    @Override
    public Optional<Unreadable> unreadable(Table table, List<Snapshot> snapshots) {
      assertThat(snapshots).hasSize(2);
      return Optional.of(new Unreadable(snapshots.get(1), "no key here"));
    }
  }

  @Test
  void whatExecutorsCannotReadIsNotPurged() {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    TestLake.append(table, 2);
    assertThatThrownBy(() -> catalog.context().checkPurge(T, new Executors(1)))
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining(
            "Table lake.db.t: Spark's executors cannot read manifest list "
                + table.currentSnapshot().manifestListLocation()
                + ", which the driver can: no key here")
        .hasMessageContaining("Nothing was dropped");
    catalog.context().checkPurge(T, new Executors(2));
  }

  private static void assertRefused(Runnable use, String... words) {
    assertThatThrownBy(use::run)
        .isExactlyInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("Table lake.db.t: manifest list", "cannot be read: denied")
        .hasMessageContainingAll(words)
        .message()
        .doesNotContain("purge_without_key", "gone for good");
  }

  @Test
  void aFolderThatCannotBeListedIsNotPurged() {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    TableMetadata metadata = TestLake.metadata(table);
    NoLists storage = new NoLists();
    storage.setConf(new Configuration());
    assertThatThrownBy(
            () ->
                new LostKeyPurge("lake.db.t", metadata, storage)
                    .run(() -> Assertions.fail("dropped")))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContainingAll("lake.db.t", "nothing was dropped", "cannot be listed: denied");
  }

  /** A client that may not list, nor read manifest lists. */
  public static final class NoLists extends HadoopFileIO {
    private static final long serialVersionUID = 1L;

    @Override
    public InputFile newInputFile(String path) {
      if (path.contains("/snap-")) {
        throw new ForbiddenException("denied: %s", path);
      }

      return super.newInputFile(path);
    }

    @Override
    public Iterable<FileInfo> listPrefix(String prefix) {
      throw new ForbiddenException("denied: %s", prefix);
    }
  }
}
