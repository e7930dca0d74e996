package io.icebergcrypto.spark.copy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.lifecycle.PathMapping;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.exceptions.AlreadyExistsException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** What is left of a run that fails. */
@ParameterizedClass
@EnumSource(names = "HADOOP")
class StagingTest extends LakeFixture {
  @Test
  void theListOfAnotherRunStays() throws IOException {
    BaseTable table = (BaseTable) TestLake.createTable(catalog, "t", Map.of());
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
