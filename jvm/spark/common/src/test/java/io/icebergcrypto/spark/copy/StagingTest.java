package io.icebergcrypto.spark.copy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.lifecycle.PathMapping;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.types.Types;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is left of a run that fails. */
class StagingTest {
  private static final Schema SCHEMA =
      new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));

  @TempDir private Path folder;

  @Test
  void theListOfAnotherRunStays() throws IOException {
    BaseTable table =
        (BaseTable)
            new HadoopTables()
                .create(SCHEMA, PartitionSpec.unpartitioned(), Map.of(), folder + "/t");
    PathMapping paths = new PathMapping(folder + "/t", folder + "/copy");
    CopyRequest request = new CopyRequest(paths, null, null, folder + "/staging", true);
    Staging first = Staging.of(table, request, "first");
    Staging second = Staging.of(table, request, "second");
    Path list = Path.of(first.writeFileList(lines -> lines.copied(folder + "/t/a")));
    assertThatThrownBy(() -> second.writeFileList(lines -> {}))
        .isInstanceOf(AlreadyExistsException.class);
    assertThat(second.deleteWritten()).isTrue();
    assertThat(Files.readString(list)).isEqualTo("%1$s/t/a,%1$s/copy/a%n".formatted(folder));
    assertThat(first.deleteWritten()).isTrue();
    assertThat(list).doesNotExist();
  }
}
