package io.icebergcrypto.parquet.tables;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.PlaintextException;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is checked where a task writes a file of a Hudi or Delta table. */
class TableChecksTest {
  private static final String CHECKS = "a.Checks";
  private static final Map<String, String> KEYS = Map.of("ssn", "pii", "address.street", "pii");

  @TempDir private java.nio.file.Path folder;
  private final Configuration hadoop = new Configuration(false);

  private static ColumnChoices keys(boolean complete) {
    return new ColumnChoices(true, KEYS, complete, "footer", false, false);
  }

  private void table(String... properties) throws IOException {
    Files.createDirectories(folder.resolve(".hoodie"));
    Files.write(folder.resolve(".hoodie/hoodie.properties"), java.util.List.of(properties));
  }

  private ThrowingCallable hudi(ColumnChoices chosen) {
    Path file =
        new Path("hoodie-" + folder.toUri().toString().replace("///", "/"), "a/b/1.parquet");
    return () -> HudiTable.checkWrite(file, chosen, hadoop);
  }

  @Test
  void aTableThatIsSafe() throws IOException {
    table("hoodie.table.name=t", "hoodie.table.type=COPY_ON_WRITE");
    assertThatCode(hudi(keys(true))).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @CsvSource({
    "hoodie.table.type=MERGE_ON_READ, hoodie.table.type=MERGE_ON_READ in .hoodie/hoodie.properties",
    "hoodie.table.metadata.partitions=files, hoodie.table.metadata.partitions=files",
    "hoodie.of.a.later.version=1, hoodie.of.a.later.version=1",
    "hoodie.table.partition.fields=ssn:SIMPLE, 'column ''ssn'', in names of folders'",
  })
  void whatIsStoredIsNotKnownToBeSafe(String property, String told) throws IOException {
    table("hoodie.table.name=t", property);
    assertThatThrownBy(hudi(keys(true)))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining(told);
    assertThatCode(hudi(new ColumnChoices(true, KEYS, true, "footer", false, true)))
        .doesNotThrowAnyException();
  }

  @Test
  void whereAllThatIsAllowedKeysAreCheckedAllTheSame() throws IOException {
    assertThatCode(hudi(new ColumnChoices(true, KEYS, true, null, false, true)))
        .doesNotThrowAnyException(); // nobody knows which table it is
    assertThatCode(
            () ->
                HudiTable.checkWrite(
                    null, new ColumnChoices(true, KEYS, true, null, false, true), hadoop))
        .doesNotThrowAnyException();
    table("hoodie.table.type=MERGE_ON_READ", "hoodie.table.recordkey.fields=ssn");
    assertThatThrownBy(hudi(new ColumnChoices(true, KEYS, true, null, false, true)))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("_hoodie_record_key, which repeats its values, has not");
    assertThatThrownBy(hudi(new ColumnChoices(true, Map.of(), true, null, true, true)))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining("key files");
  }

  @Test
  void itsMetadataTable() throws IOException {
    table("hoodie.table.name=t");
    Files.createDirectories(folder.resolve(".hoodie/metadata"));
    assertThatThrownBy(hudi(keys(true))).hasMessageContaining("its metadata table");
  }

  @Test
  void whatNoFolderTells() {
    assertThatThrownBy(hudi(keys(true)))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("no folder above has .hoodie/hoodie.properties");
    assertThatThrownBy(() -> HudiTable.checkWrite(null, keys(true), hadoop))
        .hasMessageContaining("keys of deleted records in log files");
  }

  @Test
  void propertiesThatCannotBeReadAreNoAnswer() throws IOException {
    Files.createDirectories(folder.resolve(".hoodie/hoodie.properties"));
    assertThatThrownBy(hudi(keys(true)))
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining("hoodie.properties");
  }

  @Test
  void keysOfItsOwnColumns() throws IOException {
    table("hoodie.table.name=t", "hoodie.table.recordkey.fields=ssn");
    assertThatThrownBy(hudi(new ColumnChoices(true, KEYS, true, "pii", false, false)))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("_hoodie_record_key, which repeats its values, has not");
    Map<String, String> both = Map.of("ssn", "pii", "_hoodie_record_key", "pii");
    assertThatCode(hudi(new ColumnChoices(true, both, true, "pii", false, false)))
        .doesNotThrowAnyException();
    assertThatThrownBy(hudi(new ColumnChoices(true, both, true, "footer", false, false)))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining(
            "values of record key 'ssn', which has key 'pii', in footers, for who may use key"
                + " 'footer'");
    assertThatCode(hudi(new ColumnChoices(true, both, true, "footer", false, true)))
        .doesNotThrowAnyException();
    assertThatThrownBy(hudi(new ColumnChoices(true, both, true, "pii", true, false)))
        .isInstanceOf(NotSupportedException.class);
    assertThatThrownBy(hudi(new ColumnChoices(true, both, true, null, false, false)))
        .hasMessageContaining("in plaintext footers");
  }

  @Test
  void keysAreForColumnsInAnyCase() {
    List<String> columns = List.of("ssn", "Id", "address");
    Map<String, String> names = Map.of("SSN", "k2", "address.street", "k2");
    assertThat(new ColumnChoices(true, names, false, "footer", false, false).keyed(columns))
        .containsExactlyInAnyOrder("ssn", "address");
    assertThat(new ColumnChoices(true, names, true, "footer", false, false).keyed(columns))
        .hasSize(3);
    assertThat(new ColumnChoices(false, Map.of(), false, "footer", false, false).keyed(columns))
        .isEmpty();
  }

  private void delta(ColumnChoices chosen) {
    DeltaStatistics.checkWrite(new Path("/t/city=Ulm/1.parquet"), chosen, hadoop, CHECKS);
  }

  private void assertStatistics(ColumnChoices chosen) {
    assertThatThrownBy(() -> delta(chosen))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContainingAll("into its log, in plaintext", DeltaStatistics.COLLECT + "=false");
  }

  @Test
  void deltaHasStatisticsUnlessTheSessionHasNone() {
    assertStatistics(keys(false));
    hadoop.set("spark.sql.extensions", "a.Other," + CHECKS);
    hadoop.set(DeltaStatistics.COLLECT, "false");
    assertThatCode(() -> delta(keys(true))).doesNotThrowAnyException();
  }

  @Test
  void aSessionCouldHaveSetWhatIsATablesProperty() {
    hadoop.set(DeltaStatistics.COUNT, "0");
    assertStatistics(keys(false));
    hadoop.set("spark.sql.extensions", CHECKS);
    assertThatCode(() -> delta(keys(true))).doesNotThrowAnyException();
    hadoop.set(DeltaStatistics.COUNT, "1");
    assertStatistics(keys(false));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "id | false | false",
        "id,address.city | false | false",
        "SSN | false | true",
        "address | false | true",
        "address.street.x | false | true",
        "`a,b` | false | true",
        "id | true | true",
      })
  void deltasStatisticsOfColumns(String columns, boolean complete, boolean refused) {
    hadoop.set("spark.sql.extensions", CHECKS);
    hadoop.set(DeltaStatistics.COLUMNS, columns);
    hadoop.set(DeltaStatistics.COUNT, "0"); // which counts only without names
    if (refused) {
      assertStatistics(keys(complete));
    } else {
      assertThatCode(() -> delta(keys(complete))).doesNotThrowAnyException();
    }
  }

  @Test
  void deltasPartitionsAreInItsLog() {
    hadoop.set(DeltaStatistics.COLLECT, "false");
    Path file = new Path("/t/city=Ulm/ssn=1/1.parquet");
    assertThatThrownBy(() -> DeltaStatistics.checkWrite(file, keys(true), hadoop, CHECKS))
        .isInstanceOf(PlaintextException.class)
        .hasMessageContaining("column 'ssn', which has key 'pii'");
    Path escaped = new Path("/t/e%23mail=x/1.parquet");
    ColumnChoices mail = new ColumnChoices(true, Map.of("e#mail", "pii"), true, "k", false, false);
    assertThatThrownBy(() -> DeltaStatistics.checkWrite(escaped, mail, hadoop, CHECKS))
        .hasMessageContaining("column 'e#mail', which has key 'pii'");
    for (String name : new String[] {"delta.randomizeFilePrefixes", "delta.columnMapping.mode"}) {
      hadoop.set(name, name.endsWith("mode") ? "name" : "true");
      assertThatThrownBy(() -> delta(keys(true))).hasMessageContaining("cannot be determined");
      hadoop.unset(name);
    }
  }

  @Test
  void nobodyElseCalls() {
    assertThat(TableFormat.calling()).isEmpty();
    assertThat(TableFormat.repeating()).isEmpty();
    assertThat(TableFormat.DELTA.owns("org.apache.spark.sql.delta.files.DeltaFileFormatWriter$"))
        .isTrue();
    assertThat(TableFormat.HUDI.owns("org.apache.hudi.io.HoodieCreateHandle")).isTrue();
  }
}
