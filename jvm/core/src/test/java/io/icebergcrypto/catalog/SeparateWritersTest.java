package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.testing.AppendProcess;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.JavaCommand;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.PointerServer;
import io.icebergcrypto.testing.PostgresServer;
import io.icebergcrypto.testing.ServerProcess;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.LongStream;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Writers in processes of their own lose nothing, on each catalog that several can open. */
@ParameterizedClass
@EnumSource
class SeparateWritersTest {
  enum Shared {
    METASTORE,
    REST,
    SQLITE,
    POSTGRESQL,
    HDFS,
    GLUE,
    NESSIE
  }

  private static final int WRITERS = 4;
  private static final int COMMITS = 20;

  @Parameter Shared shared;
  @TempDir Path folder;
  private AutoCloseable server;

  @AfterEach
  void stop() throws Exception {
    if (server != null) {
      server.close();
    }
  }

  @Test
  void fourProcessesOfTwentyCommitsEachLoseNothing() throws Exception {
    assumeTrue(LakeFixture.NIGHTLY, "left to the night");
    Map<String, String> properties = properties();
    Catalog catalog = AppendProcess.open(properties);
    TestLake.createTable(catalog, "t", Map.of());
    Path file = folder.resolve("catalog.properties");
    try (Writer out = Files.newBufferedWriter(file)) {
      Properties all = new Properties();
      all.putAll(properties);
      all.store(out, null);
    }

    List<Process> writers = new ArrayList<>();
    for (int i = 0; i < WRITERS; i++) {
      writers.add(start(file, i * COMMITS, folder.resolve("writer-" + i + ".log")));
    }
    for (int i = 0; i < WRITERS; i++) {
      assertThat(writers.get(i).waitFor())
          .as(Files.readString(folder.resolve("writer-" + i + ".log")))
          .isZero();
    }

    Table table = AppendProcess.open(properties).loadTable(LakeFixture.T);
    assertThat(TestLake.ids(table))
        .containsExactlyElementsOf(LongStream.range(0, WRITERS * COMMITS).boxed().toList());
    assertThat(table.snapshots()).hasSize(WRITERS * COMMITS);
    TableProcess.checkReachable(table);
    catalog.dropTable(LakeFixture.T, false);
    if (shared == Shared.REST) { // the server of all tests
      ((SupportsNamespaces) catalog).dropNamespace(TestLake.DB);
    }
  }

  /** The properties of the encrypting catalog; starts the server, if it needs one. */
  private Map<String, String> properties() throws Exception {
    Map<String, String> all =
        switch (shared) {
          case METASTORE -> metastore();
          case REST -> Backend.REST.properties(folder);
          case SQLITE -> Backend.JDBC.properties(folder);
          case POSTGRESQL -> postgres();
          case HDFS -> hdfs();
          case GLUE -> PointerServer.GLUE.stock(folder);
          case NESSIE -> nessie();
        };
    Map<String, String> properties = new HashMap<>(all);
    properties.put("encryption.catalog-type", properties.remove("type"));
    properties.put("catalog-impl", EncryptedCatalog.class.getName());
    properties.putAll(TestKeystore.create(folder, "k1").properties());
    return properties;
  }

  private Map<String, String> metastore() throws IOException {
    ServerProcess metastore = ServerProcess.metastore(folder);
    this.server = metastore;
    Map<String, String> all = new HashMap<>(Backend.HIVE.properties(folder));
    metastore
        .metastoreConf()
        .getPropsWithPrefix("")
        .forEach(
            (key, value) -> {
              if (key.matches("(hive|iceberg)\\..*")) {
                all.put(AppendProcess.CONF + key, value);
              }
            });
    return all;
  }

  private Map<String, String> postgres() throws Exception {
    assumeTrue(PostgresServer.programs().isPresent(), "there is no PostgreSQL server: not tested");
    PostgresServer postgres = new PostgresServer();
    this.server = postgres;
    Map<String, String> all = new HashMap<>(Backend.JDBC.properties(folder));
    all.put("uri", postgres.uri());
    return all;
  }

  /** A Hadoop catalog on a local disk is for one process: rename replaces what is there. */
  private Map<String, String> hdfs() throws IOException {
    ServerProcess hdfs = ServerProcess.hdfs(folder);
    this.server = hdfs;
    Map<String, String> all = new HashMap<>(Backend.HADOOP.properties(folder));
    all.put("warehouse", "hdfs://127.0.0.1:" + hdfs.port() + "/warehouse");
    return all;
  }

  private Map<String, String> nessie() throws IOException {
    assumeTrue(
        PointerServer.NESSIE.isAvailable(),
        "Nessie's server needs a JDK of 21 or later: not tested");
    return PointerServer.NESSIE.stock(folder);
  }

  private static Process start(Path properties, long first, Path log) throws IOException {
    List<String> command = JavaCommand.of(System.getProperty("java.class.path"));
    for (String name : List.of("aws.accessKeyId", "aws.secretAccessKey")) {
      if (System.getProperty(name) != null) {
        command.add("-D" + name + "=" + System.getProperty(name));
      }
    }

    command.addAll(
        List.of(
            AppendProcess.class.getName(),
            properties.toString(),
            String.valueOf(first),
            String.valueOf(COMMITS)));
    return new ProcessBuilder(command)
        .redirectErrorStream(true)
        .redirectOutput(log.toFile())
        .start();
  }
}
