package io.icebergcrypto.catalog.behind;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.NumberedCalls;
import io.icebergcrypto.testing.NumberedCalls.Fault;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.Table;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.CommitStateUnknownException;
import org.apache.iceberg.exceptions.NoSuchTableException;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A table whose metadata could not be read once, in the same session. */
@ParameterizedClass
@EnumSource(names = {"JDBC", "HADOOP"})
class FailedLoadTest extends LakeFixture {
  private static final Set<Kind> READS = EnumSet.of(Kind.OPEN);

  @ParameterizedTest
  @ValueSource(strings = {"k1", ""})
  void theNextCommitDoesNotTakeThePlaceOfTheLast(String keyId) {
    boolean afterCommit = false;
    String hit;
    int number = 0;
    do {
      TableIdentifier name = TableIdentifier.of(TestLake.DB, "t" + number);
      Table table = created(name, keyId);
      NumberedCalls.begin(folder.toString(), READS, Fault.FAILED, number++);
      boolean isMade = true;
      try {
        TestLake.append(table, 1);
      } catch (RuntimeException e) {
        isMade = false;
      } finally {
        hit = NumberedCalls.end();
      }

      TestLake.append(table, 2);
      List<Long> rows = isMade ? List.of(1L, 2L) : List.of(2L);
      assertThat(TestLake.rows(table)).as(hit).isEqualTo(rows);
      assertThat(TestLake.rows(catalog.loadTable(name))).as(hit).isEqualTo(rows);
      afterCommit |= isMade && hit != null && hit.contains("metadata.json");
    } while (hit != null);

    assertThat(afterCommit).as("metadata was not read after a commit").isTrue();
  }

  @ParameterizedTest
  @EnumSource(
      value = Fault.class,
      names = {"FAILED", "EXPIRED"}) // once, or until it is asked a third time
  void aTableThatWasCreatedIsNotReportedAsFailed(Fault fault) {
    String hit;
    int number = 0;
    do {
      TableIdentifier name = TableIdentifier.of(TestLake.DB, "c" + number);
      NumberedCalls.begin(folder.toString(), READS, fault, number++);
      Throwable error = catchThrowable(() -> created(name, "k1"));
      hit = NumberedCalls.end();
      boolean unknown = error instanceof CommitStateUnknownException;
      assertThat(catalog.tableExists(name)).as(hit).isEqualTo(error == null || unknown);
    } while (hit != null);
  }

  private Table created(TableIdentifier name, String keyId) {
    return keyId.isEmpty()
        ? catalog.createTable(name, TestLake.SCHEMA)
        : TestLake.createTable(catalog, name.name(), Map.of());
  }

  @Test
  void anotherTableOfThatNameIsNotTakenForIt() throws IOException {
    Table table = created(T, "");
    try (EncryptedCatalog other = lake.open(Map.of())) {
      TestLake.append(other.loadTable(T), 1);
      NumberedCalls.begin(folder.toString(), READS, Fault.FAILED, 0);
      catchThrowable(table::refresh); // on JDBC Iceberg reads it again
      assertThat(NumberedCalls.end()).contains("metadata.json");
      other.dropTable(T);
      other.createTable(T, TestLake.SCHEMA);
    }

    assertThatThrownBy(table::refresh).hasMessageContaining("Table UUID does not match");
    assertThatThrownBy(table::refresh).hasMessageContaining("Table UUID does not match");
  }

  /** Dropped and made again, with as many commits: Iceberg looks for the next version only. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @Tag("HADOOP")
  void anotherTableOfTheSameVersionIsNotOverwritten(boolean byPath) throws IOException {
    EncryptedCatalog own = byPath ? catalog.byPath() : catalog;
    TableIdentifier name = byPath ? TableIdentifier.of(folder.resolve("path/t").toString()) : T;
    assumeTrue(backend == Backend.HADOOP, "no other catalog looks for versions");
    Table table = TestLake.append(encrypted(own, name), 1);
    Table unread = own.loadTable(name);
    Table schema = own.loadTable(name);
    UpdateSchema begun = schema.updateSchema().addColumn("more", Types.LongType.get());
    try (EncryptedCatalog other = lake.open(Map.of())) {
      EncryptedCatalog others = byPath ? other.byPath() : other;
      others.dropTable(name);
      assertThatThrownBy(() -> own.loadTable(name)).isInstanceOf(NoSuchTableException.class);
      TestLake.append(encrypted(others, name), 2);
    }

    assertThatThrownBy(begun::commit);
    assertThatThrownBy(() -> table.updateProperties().set("a", "b").commit());
    assertThatThrownBy(() -> TestLake.append(table, 3)).hasMessageContaining("UUID does not match");
    assertThatThrownBy(unread::refresh).hasMessageContaining("Table UUID does not match");
    assertThat(TestLake.rows(own.loadTable(name))).containsExactly(2L);
  }

  private static Table encrypted(EncryptedCatalog own, TableIdentifier name) {
    return own.buildTable(name, TestLake.SCHEMA).withProperty("encryption.key-id", "k1").create();
  }
}
