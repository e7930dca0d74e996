package io.icebergcrypto.lifecycle.encrypt;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.Schema;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.inmemory.InMemoryCatalog;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Forged headers; with Spark by test_portions.py. The storage cannot list. */
final class CopyLogTest {
  private final InMemoryCatalog catalog = new InMemoryCatalog();
  private BaseTable table;
  private String folder;

  @BeforeEach
  void create() {
    catalog.initialize("lake", Map.of());
    catalog.createNamespace(Namespace.of("db"));
    Schema schema = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));
    this.table = (BaseTable) catalog.createTable(TableIdentifier.of("db", "t"), schema);
    this.folder = table.location() + "/metadata/_encryption-" + table.uuid() + "/";
  }

  @AfterEach
  void close() throws IOException {
    catalog.close();
  }

  @Test
  void onlyBodiesAreDeleted() throws IOException {
    String body = folder + "copy-" + UUID.randomUUID() + ".bin";
    String other = table.location() + "/data/copy-" + UUID.randomUUID() + ".bin";
    String above = folder + "../../data/copy-" + UUID.randomUUID() + ".bin";
    int number = 1;
    for (String file : new String[] {body, other, above}) {
      write(file, "x");
      header(number++, "k1", file);
    }

    CopyLog.deleteAll(table);
    assertThat(exists(body)).isFalse();
    assertThat(exists(folder + "group-000002.json")).isFalse();
    assertThat(exists(other) && exists(above)).isTrue();
    header(1, "k1", other);
    CopyLog log = CopyLog.read(null, table, "k1"); // no catalog: nothing is opened
    assertThat(log.groups()).isEmpty();
    log.delete();
    assertThat(exists(other)).isTrue();
  }

  @Test
  void theKeyOfAHeaderIsNoAdvice() throws IOException {
    header(1, "theirs", folder + "copy-" + UUID.randomUUID() + ".bin");
    assertThatThrownBy(() -> CopyLog.read(null, table, "k1"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(
            "group-000001.json says", "do not use a key just because it is named there")
        .hasMessageNotContaining("encrypt_table with 'theirs'");
  }

  private void header(int number, String keyId, String body) throws IOException {
    write(
        folder + String.format("group-%06d.json", number),
        String.format(
            "{\"layout\":2,\"table_uuid\":\"%s\",\"key_id\":\"%s\",\"body\":\"%s\"}",
            table.uuid(), keyId, body));
  }

  private void write(String file, String text) throws IOException {
    try (OutputStream out = table.io().newOutputFile(file).createOrOverwrite()) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    }
  }

  private boolean exists(String file) {
    return ((InMemoryFileIO) table.io()).fileExists(file);
  }
}
