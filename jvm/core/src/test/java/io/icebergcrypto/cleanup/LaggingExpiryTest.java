package io.icebergcrypto.cleanup;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableOperations;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A catalog that returns metadata from before a commit, after it. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class LaggingExpiryTest extends LakeFixture {
  @Test
  void noFileOfASnapshotThatItDoesNotKnowIsDeleted() {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    TestLake.append(table, 2);
    TableMetadata older = TestLake.metadata(table);
    TestLake.append(table, 3);
    TableMetadata newest = TestLake.metadata(table);
    Set<Path> files = TestLake.reachable(table);
    TableOperations lagging =
        new StaticTableOperations(older, table.io()) {
          @Override
          public TableMetadata refresh() {
            return older;
          }
        };

    new ExpireEncryptedSnapshots(
            "lake.db.t",
            table.expireSnapshots(),
            lagging,
            () -> newest,
            cleanUp -> cleanUp.after(() -> newest))
        .expireSnapshotId(table.history().get(0).snapshotId())
        .commit();

    table.refresh();
    assertThat(table.snapshots()).hasSize(2);
    assertThat(TestLake.rows(table)).containsExactly(1L, 2L, 3L);
    assertThat(files).allMatch(Files::exists);
  }
}
