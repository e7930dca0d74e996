package io.icebergcrypto.lifecycle.encrypt;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** With Spark by test_encrypt_table.py. */
final class WritableSpecTest {
  private static final Schema SCHEMA =
      new Schema(
          Types.NestedField.required(1, "id", Types.LongType.get()),
          Types.NestedField.optional(2, "a", Types.LongType.get()));

  /** A table that is partitioned by both columns. */
  private static BaseTable create(InMemoryCatalog catalog, String formatVersion) {
    catalog.initialize("lake", Map.of());
    catalog.createNamespace(Namespace.of("db"));
    PartitionSpec spec = PartitionSpec.builderFor(SCHEMA).identity("a").identity("id").build();
    return (BaseTable)
        catalog
            .buildTable(TableIdentifier.of("db", "t"), SCHEMA)
            .withPartitionSpec(spec)
            .withProperty("format-version", formatVersion)
            .create();
  }

  /**
   * The spec for files of the first one, whose column was dropped, and how many specs there are.
   */
  @ParameterizedTest
  @CsvSource({"1, 2, 3", "2, 1, 2"})
  void aSpecWithoutItsColumn(String formatVersion, int expected, int specs) throws Exception {
    try (InMemoryCatalog catalog = new InMemoryCatalog()) {
      BaseTable table = create(catalog, formatVersion);
      assertThat(specOf(form(table))).isZero();
      assertThat(form(table).specs()).hasSize(1);
      table.updateSpec().removeField("a").commit();
      assertThat(specOf(form(table))).isZero();
      table.updateSchema().deleteColumn("a").commit();
      BaseTable after = form(table);
      assertThat(specOf(after)).isEqualTo(expected);
      assertThat(after.specs()).hasSize(specs);
      assertThat(after.spec().specId()).isEqualTo(table.spec().specId());
    }
  }

  /** That of no partitions, which only the copy has, and whose id the table gives to another. */
  @Test
  void aSpecIsMoreThanItsId() throws Exception {
    try (InMemoryCatalog catalog = new InMemoryCatalog()) {
      BaseTable table = create(catalog, "1");
      table.updateSpec().removeField("a").commit();
      table.updateSchema().deleteColumn("a").commit();
      String copied = PartitionSpecParser.toJson(form(table).specs().get(2));
      assertThat(WritableSpec.all(table.operations().refresh())).hasSize(3).contains(copied);
      table.updateSpec().addField(Expressions.bucket("id", 4)).commit();
      assertThat(table.spec().specId()).isEqualTo(2);
      assertThat(WritableSpec.all(table.operations().refresh())).hasSize(4).doesNotContain(copied);
    }
  }

  private static int specOf(BaseTable table) {
    return WritableSpec.of(table.operations().current(), table.schema(), 0);
  }

  private static BaseTable form(BaseTable table) {
    TableMetadata form = PlaintextForm.of(table.operations().refresh());
    return new BaseTable(new MetadataInMemory(table.operations(), form), "lake.db.t");
  }
}
