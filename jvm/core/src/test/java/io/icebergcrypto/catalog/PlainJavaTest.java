package io.icebergcrypto.catalog;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.JavaCommand;
import io.icebergcrypto.testing.PlainJava;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.VectorsOnEarlierIceberg;
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

    String printed = run("iceberg.crypto.plain-java", PlainJava.class, folder);

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

  /** By the writer, and not only by the commit: Flink has completed a checkpoint by then. */
  @Test
  void aDeletionVectorIsRefusedWhereItsKeyWouldBeLost(@TempDir Path folder) throws Exception {
    TestKeystore.create(folder, "k1");

    String printed = run("iceberg.crypto.plain-java-1.11", VectorsOnEarlierIceberg.class, folder);

    assertThat(printed.lines()).as(printed).contains("Iceberg 1.11.0", "files 1");
    assertThat(printed.lines().filter(line -> line.startsWith("refused")))
        .as(printed)
        .hasSize(2)
        .allMatch(
            line -> line.contains("lake.db.t: this Iceberg (1.11.0) loses the keys of deletion"));
    assertThat(printed.lines()).contains("statistics AGS1", "rows [1, 2]");
  }

  private static String run(String classPath, Class<?> main, Path folder)
      throws IOException, InterruptedException {
    List<String> command = JavaCommand.of(System.getProperty(classPath));
    command.addAll(List.of(main.getName(), folder.toString()));
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), UTF_8);
    assertThat(process.waitFor()).as(printed).isZero();
    return printed;
  }
}
