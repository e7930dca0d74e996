package io.icebergcrypto.catalog;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.JavaCommand;
import io.icebergcrypto.testing.PlainJava;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The jar of core works with Iceberg and Hadoop alone: no Spark, no Flink. */
class PlainJavaTest {
  @Test
  void tablesAreEncryptedWithoutSpark(@TempDir Path folder) throws Exception {
    TestKeystore.create(folder, "k1");

    String printed = run(folder);

    assertThat(printed.lines().filter(line -> line.endsWith("]")))
        .as(printed)
        .containsExactly("avro [1, 2, 3]", "parquet [1, 2, 3]");
    // each table: 2 data files, 2 manifests, 2 manifest lists
    assertThat(printed.lines().filter(line -> line.startsWith("file")))
        .as(printed)
        .hasSize(12)
        .containsOnly("file AGS1", "file PARE AES_GCM_V1");
    assertThat(printed.lines()).filteredOn("file PARE AES_GCM_V1"::equals).hasSize(2);
  }

  private static String run(Path folder) throws IOException, InterruptedException {
    List<String> command = JavaCommand.of(System.getProperty("iceberg.crypto.plain-java"));
    command.addAll(List.of(PlainJava.class.getName(), folder.toString()));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as(printed).isZero();
    return printed;
  }
}
