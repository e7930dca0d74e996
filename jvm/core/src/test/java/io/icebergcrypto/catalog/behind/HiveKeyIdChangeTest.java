package io.icebergcrypto.catalog.behind;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.KeyManagementClient;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.hive.HiveTableOperations;
import org.apache.thrift.TException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** A commit to a metastore that changes a table's key id; RotationTest has those that succeed. */
@ParameterizedClass
@EnumSource(names = "HIVE")
class HiveKeyIdChangeTest extends LakeFixture {
  /** Of a metastore that drops the connection once it has the commit. */
  private static final class Lost extends HiveTableOperations {
    private boolean isLost;

    Lost(HiveCatalog catalog, HiveTableOperations table, KeyManagementClient kms) {
      super(catalog.getConf(), table.metaClients(), table.io(), kms, "lake", "db", "t");
    }

    @Override
    public TableMetadata refresh() {
      if (isLost) {
        throw new IllegalStateException("Failed to get table info from metastore db.t");
      }

      return super.refresh();
    }
  }

  @Test
  void aFailureAfterTheCommitIsNotOneOfTheCommit() throws TException, InterruptedException {
    Table table = TestLake.append(TestLake.createTable(catalog, "t", Map.of()), 1);
    CatalogBehind behind = catalog.context().behind();
    HiveCatalog hive = (HiveCatalog) behind.catalog();
    BaseTable stock = (BaseTable) hive.loadTable(T);
    KeyManagementClient kms = catalog.context().kms();
    Lost ops = new Lost(hive, (HiveTableOperations) stock.operations(), kms);
    TableMetadata base = ops.refresh();
    TableMetadata changed =
        TableMetadata.buildFrom(base).setProperties(Map.of("encryption.key-id", "k2")).build();
    ops.isLost = true;
    assertThatThrownBy(
            () -> behind.commit(table.name(), ops, base, changed, changed.changes(), () -> kms))
        .isInstanceOf(CommitStateUnknownException.class)
        .hasMessageContainingAll("lake.db.t", "may have made the commit", "Failed to get table");
    Map<String, String> inMetastore =
        ops.metaClients().run(client -> client.getTable("db", "t")).getParameters();
    assertThat(inMetastore).containsEntry("encryption.key-id", "k2");
  }
}
