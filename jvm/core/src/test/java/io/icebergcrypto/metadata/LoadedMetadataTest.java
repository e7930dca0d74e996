package io.icebergcrypto.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;

/** Metadata that a catalog gives after newer one. */
class LoadedMetadataTest {
  private static final TableMetadata FIRST =
      at(
          "00000-a",
          TableMetadata.newTableMetadata(
              new Schema(Types.NestedField.required(1, "id", Types.LongType.get())),
              PartitionSpec.unpartitioned(),
              "s3://bucket/db/t",
              Map.of("format-version", "3")));

  private static TableMetadata at(String name, TableMetadata metadata) {
    return TableMetadataParser.fromJson(
        "s3://bucket/db/t/metadata/" + name + ".metadata.json",
        TableMetadataParser.toJson(metadata));
  }

  private static TableMetadata after(TableMetadata base, String name) {
    return at(name, TableMetadata.buildFrom(base).setProperties(Map.of("at", name)).build());
  }

  private static LoadedMetadata answers(List<TableMetadata> answers) {
    Deque<TableMetadata> left = new ArrayDeque<>(answers);
    return new LoadedMetadata(
        new StaticTableOperations(FIRST, new InMemoryFileIO()) {
          @Override
          public TableMetadata refresh() {
            return left.remove();
          }
        },
        "lake.db.t");
  }

  @Test
  void olderMetadataIsLoadedAgainOnce() {
    TableMetadata second = after(FIRST, "00001-b");
    TableMetadata third = after(second, "00002-c");
    assertThat(LoadedMetadata.isOlder(FIRST, second)).isTrue();
    assertThat(LoadedMetadata.isOlder(second, FIRST)).isFalse();
    assertThat(LoadedMetadata.isOlder(second, second)).isFalse();
    LoadedMetadata lagging = answers(List.of(second, FIRST, second, FIRST, third, second, second));
    assertThat(lagging.refresh()).isSameAs(second);
    assertThat(lagging.refresh()).isSameAs(second);
    assertThat(lagging.refresh()).isSameAs(third);
    assertThat(lagging.refresh()).as("it was set back").isSameAs(second);
  }
}
