package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.RestServer;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestKeystore;
import io.icebergcrypto.testing.TestLake;
import java.io.BufferedReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.SupportsNamespaces;
import org.apache.iceberg.catalog.TableIdentifier;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** No row and no key is lost, whoever else writes and however a writer ends. */
class WritersTest {
  private static final int WRITERS = 4;
  private static final int COMMITS = 20;
  private static final int KILLS = Integer.getInteger("iceberg.crypto.kills", 5);

  @TempDir private Path folder;

  @ParameterizedTest
  @EnumSource(names = {"HIVE", "REST", "JDBC", "HADOOP"})
  void fourWritersOfTwentyCommitsEachLoseNothing(Backend backend) throws Exception {
    try (RestServer server = backend == Backend.REST ? RestServer.start(folder) : null) {
      TestLake lake = lake(backend, server);
      TestLake.createTable(lake.open(Map.of()), "t", Map.of());
      ExecutorService threads = Executors.newFixedThreadPool(WRITERS);
      List<Future<?>> writers = new ArrayList<>();
      for (int i = 0; i < WRITERS; i++) {
        long first = i * COMMITS;
        writers.add(
            threads.submit(
                () -> {
                  Table table = load(lake.open(Map.of())); // a catalog and a KMS client of its own
                  for (long id = first; id < first + COMMITS; id++) {
                    TestLake.append(table, id);
                  }
                  return null;
                }));
      }
      for (Future<?> writer : writers) {
        writer.get();
      }
      threads.shutdown();

      Table table = load(lake.open(Map.of()));
      assertThat(TestLake.ids(table))
          .containsExactlyElementsOf(LongStream.range(0, WRITERS * COMMITS).boxed().toList());
      assertThat(table.snapshots()).hasSize(WRITERS * COMMITS);
      TableProcess.checkReachable(table);
      assertThat(TestLake.files(table))
          .allSatisfy(file -> assertThat(TestLake.magic(file).encrypted()).isTrue());
      Catalog catalog = lake.open(Map.of()); // other tests share the embedded metastore
      catalog.dropTable(TableIdentifier.of(TestLake.DB, "t"), true);
      ((SupportsNamespaces) catalog).dropNamespace(TestLake.DB);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"HIVE", "REST", "JDBC", "HADOOP"})
  void aKilledWriterLeavesATableThatReads(Backend backend) throws Exception {
    Random random = new Random(7);
    try (RestServer server = backend == Backend.REST ? RestServer.start(folder) : null) {
      lake(backend, server);
      List<String> arguments =
          List.of(backend.name(), folder.toString(), server == null ? "-" : server.uri());
      run("create", arguments);
      Set<String> committed = new HashSet<>();
      for (int kill = 0; kill < KILLS; kill++) {
        List<String> output = killed(arguments, kill * 1_000_000L, random.nextInt(400));
        // what was reported as committed is there; the last one may be there without a report
        assertThat(ids("ROW ", output)).containsAll(committed);
        committed.addAll(ids("COMMITTED ", output));
      }
      assertThat(ids("ROW ", run("check", arguments))).containsAll(committed);
    }
  }

  private TestLake lake(Backend backend, RestServer server) throws Exception {
    return new TestLake(
        backend,
        folder,
        server == null ? "-" : server.uri(),
        TestKeystore.create(folder, "k1").properties());
  }

  private static Table load(Catalog catalog) {
    return catalog.loadTable(TableIdentifier.of(TestLake.DB, "t"));
  }

  private static Set<String> ids(String word, List<String> output) {
    return output.stream()
        .filter(line -> line.startsWith(word))
        .map(line -> line.substring(word.length()))
        .collect(Collectors.toSet());
  }

  private static List<String> run(String what, List<String> arguments) throws Exception {
    Process process = start(what, arguments, List.of());
    List<String> output = process.inputReader().lines().toList();
    assertThat(process.waitFor()).as(String.join("\n", output)).isZero();
    return output;
  }

  /** Starts a writer and kills it -9 so many milliseconds after it is ready; gives what it said. */
  private static List<String> killed(List<String> arguments, long firstId, int afterMs)
      throws Exception {
    Process process = start("write", arguments, List.of(String.valueOf(firstId)));
    List<String> output = new ArrayList<>();
    try (BufferedReader out = process.inputReader()) {
      for (String line = out.readLine(); line != null; line = out.readLine()) {
        output.add(line);
        if (line.equals("READY")) {
          CompletableFuture.delayedExecutor(afterMs, TimeUnit.MILLISECONDS)
              .execute(process::destroyForcibly);
        }
      }
    }

    assertThat(process.waitFor()).as(String.join("\n", output)).isEqualTo(128 + 9);
    assertThat(output).contains("READY");
    return output;
  }

  private static Process start(String what, List<String> arguments, List<String> more)
      throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx512m", "-XX:TieredStopAtLevel=1"));
    command.add("-D" + Backend.METASTORE + "=" + Path.of(arguments.get(1), "metastore"));
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.addAll(List.of(TableProcess.class.getName(), what));
    command.addAll(arguments);
    command.addAll(more);
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }
}
