package io.icebergcrypto.audit.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.Table;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** The rest: RepairTest, test_doctor_tables.py. */
@ParameterizedClass
@EnumSource(names = "HADOOP")
class PlaintextFindingsTest extends LakeFixture {
  /** A commit and maintenance, after the metadata was loaded and before its list is looked at. */
  @Test
  void aListThatExpiresMeanwhileIsNotLost() throws IOException {
    Table table = TestLake.createTable(catalog, "t", Map.of());
    TestLake.append(table, 1);
    BaseTable then = (BaseTable) lake.openStock().loadTable(T);
    Snapshot first = then.currentSnapshot();
    TestLake.append(table, 2);
    table.expireSnapshots().expireSnapshotId(first.snapshotId()).commit();
    assertThat(TestLake.path(first.manifestListLocation())).doesNotExist();
    List<Finding> findings = new ArrayList<>();
    new PlaintextFindings(then, then.io(), false).addTo(findings);
    assertThat(findings).isEmpty();
  }
}
