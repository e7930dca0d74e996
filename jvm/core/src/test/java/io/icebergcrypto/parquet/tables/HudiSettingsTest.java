package io.icebergcrypto.parquet.tables;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HudiSettingsTest {
  @ParameterizedTest
  @CsvSource({
    "hoodie.metadata.enable, false",
    "hoodie.metadata.enable, FALSE",
    "hoodie.metadata.index.column.stats.enable, false",
    "hoodie.table.type, COPY_ON_WRITE",
    "hoodie.datasource.write.table.type, COPY_ON_WRITE",
    "type, cow",
    "hoodie.table.base.file.format, PARQUET",
    "hoodie.table.metadata.partitions, ''",
    "hoodie.table.keygenerator.class, org.apache.hudi.keygen.SimpleKeyGenerator",
    "hoodie.index.type, GLOBAL_BLOOM",
    "hoodie.datasource.write.operation, bulk_insert",
    "hoodie.upsert.shuffle.parallelism, 2",
    "hoodie.record.merge.strategy.id, a-strategy",
    "hoodie.write.record.merge.mode, COMMIT_TIME_ORDERING",
    "hoodie.clustering.plan.strategy.sort.columns, city",
  })
  void isSafe(String name, String value) {
    assertThat(HudiSettings.unknown(Map.of(name, value))).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({
    "hoodie.metadata.enable, true",
    "hoodie.metadata.enable, no",
    "hoodie.metadata.enable, true and false",
    "hoodie.metadata.index.column.stats.enable, true",
    "hoodie.metadata.streaming.write.enabled, true",
    "hoodie.metadata.index.column.stats.column.list, ssn",
    "hoodie.table.type, MERGE_ON_READ",
    "hoodie.datasource.write.storage.type, MERGE_ON_READ",
    "type, mor",
    "hoodie.table.base.file.format, ORC",
    "hoodie.base.file.format, HFILE",
    "hoodie.table.ro.file.format, ORC",
    "hoodie.table.rt.file.format, ORC",
    "hoodie.table.multiple.base.file.formats.enable, true",
    "hoodie.table.cdc.enabled, true",
    "hoodie.table.metadata.partitions, files",
    "hoodie.table.metadata.partitions.inflight, column_stats",
    "hoodie.bootstrap.base.path, /t",
    "hoodie.datasource.write.operation, bootstrap",
    "hoodie.datasource.write.keygenerator.class, com.acme.Keys",
    "hoodie.datasource.write.payload.class, com.acme.Payload",
    "hoodie.write.record.merge.custom.implementation.classes, com.acme.Merger",
    "hoodie.record.merge.property.hoodie.payload.delete.field, op",
    "hoodie.index.type, HBASE",
    "hoodie.index.type, RECORD_INDEX",
    "hoodie.index.class, com.acme.Index",
    "hoodie.bloom.index.use.metadata, true",
    "hoodie.errortable.enable, true",
    "hoodie.write.commit.callback.on, true",
    "hoodie.clustering.execution.strategy.class, org.apache.hudi.client.BinaryCopy",
    "hoodie.io.factory.class, com.acme.Factory",
    "hoodie.parquet.write.config.injector.class, com.acme.Injector",
    "hoodie.of.a.later.version, 1",
    "HOODIE.METADATA.ENABLE, false",
  })
  void isNotKnownToBeSafe(String name, String value) {
    assertThat(HudiSettings.unknown(Map.of(name, value))).containsExactly(name + "=" + value);
  }
}
