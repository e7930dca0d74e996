package io.icebergcrypto.parquet.tables;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HudiSettingsTest {
  @TempDir private Path folder;

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
    "hoodie.payload.event.time.field, none",
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
    "hoodie.datasource.write.payload.class, org.apache.hudi.common.P and com.acme.Payload",
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

  @ParameterizedTest
  @CsvSource({
    "ssn, true, true",
    "address.day, true, true",
    "ts, false, true",
    "none, false, false",
    "'', false, false",
  })
  void valuesInCommits(String column, boolean byColumns, boolean byAll) {
    ColumnChoices columns =
        new ColumnChoices(
            true, Map.of("ssn", "pii", "address", "pii"), false, "footer", false, false);
    ColumnChoices all = new ColumnChoices(true, Map.of(), true, "footer", false, false);
    Map<String, String> settings = Map.of(HudiTable.EVENT_TIME, column);
    List<String> rows = List.of("ssn", "address", "ts");
    assertThat(HudiTable.eventTimes(columns, settings, rows)).hasSize(byColumns ? 1 : 0);
    assertThat(HudiTable.eventTimes(all, settings, rows)).hasSize(byAll ? 1 : 0);
  }

  private Path defaults(String name, String text) throws IOException {
    Path made = Files.createDirectories(folder.resolve(name));
    Files.writeString(made.resolve("hudi-defaults.conf"), text);
    return made;
  }

  /** All files of settings: on the class path, and in a folder. */
  private static Map<String, String> read(Path onClassPath, String other) throws IOException {
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    try (URLClassLoader loader =
        new URLClassLoader(new URL[] {onClassPath.toUri().toURL()}, before)) {
      thread.setContextClassLoader(loader);
      return HudiDefaults.read(other, new Configuration(false));
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "hoodie.table.type MERGE_ON_READ, hoodie.table.type=COPY_ON_WRITE",
    "hoodie.table.type=COPY_ON_WRITE, hoodie.table.type MERGE_ON_READ",
    "hoodie.metadata.enable=true, hoodie.metadata.enable=false",
    "hoodie.metadata.enable=false, hoodie.metadata.enable=true",
    "hoodie.index.class=com.acme.Index, hoodie.index.type=SIMPLE",
  })
  void noFileHidesWhatAnotherSays(String one, String other) throws IOException {
    Map<String, String> found = read(defaults("a", one), defaults("b", other).toString());
    assertThat(HudiSettings.unknown(found)).hasSize(1);
    assertThat(HudiSettings.turnMetadataOff(found)).isFalse();
  }

  @Test
  void eachFileHasToTurnMetadataOff() throws IOException {
    Path off =
        defaults("a", "# of all\n\nhoodie.metadata.enable = false\nhoodie.clean.automatic true");
    Path silent = defaults("b", "hoodie.index.type=SIMPLE");
    for (Map<String, String> found :
        List.of(read(off, silent.toString()), read(silent, off.toString()))) {
      assertThat(HudiSettings.unknown(found)).isEmpty();
      assertThat(HudiSettings.turnMetadataOff(found)).isFalse();
    }

    Map<String, String> both = read(off, off.toUri().toString());
    assertThat(HudiSettings.unknown(both)).isEmpty();
    assertThat(HudiSettings.turnMetadataOff(both)).isTrue();
    assertThat(HudiSettings.turnMetadataOff(read(folder, off.toUri().toString()))).isTrue();
  }

  @Test
  void aFileThatCannotBeReadIsNoAnswer() throws IOException {
    Files.createDirectories(folder.resolve("c/hudi-defaults.conf"));
    assertThatThrownBy(() -> read(folder, folder.resolve("c").toString()))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("hudi-defaults.conf");
    assertThatThrownBy(() -> read(folder, "nowhere://a"))
        .isInstanceOf(IcebergCryptoException.class);
  }
}
