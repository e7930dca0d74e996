package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.JavaCommand;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.TableProcess;
import io.icebergcrypto.testing.TestLake;
import java.io.BufferedReader;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** No row and no key is lost, no matter who else writes and how a writer ends. */
@ParameterizedClass
@EnumSource(names = {"HIVE", "REST", "JDBC", "HADOOP"})
class WritersTest extends LakeFixture {
  private static final int WRITERS = 4;
  private static final int COMMITS = NIGHTLY ? 20 : 5;
  private static final int KILLS = Integer.getInteger("iceberg.crypto.kills", NIGHTLY ? 3 : 1);

  @Test
  void fourWritersLoseNothing() throws Exception {
    TestLake.createTable(catalog, "t", Map.of());
    ExecutorService threads = Executors.newFixedThreadPool(WRITERS);
    List<Future<?>> writers = new ArrayList<>();
    for (int i = 0; i < WRITERS; i++) {
      long first = i * COMMITS;
      writers.add(
          threads.submit(
              () -> {
                // a catalog and a KMS client of its own
                Table table = lake.open(Map.of()).loadTable(T);
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

    Table table = lake.open(Map.of()).loadTable(T);
    assertThat(TestLake.ids(table))
        .containsExactlyElementsOf(LongStream.range(0, WRITERS * COMMITS).boxed().toList());
    assertThat(table.snapshots()).hasSize(WRITERS * COMMITS);
    TableProcess.checkReachable(table);
    assertThat(TestLake.files(table))
        .allSatisfy(file -> assertThat(TestLake.magic(file).encrypted()).isTrue());
    lake.open(Map.of()).dropTable(T, true);
  }

  @Test
  void aKilledWriterLeavesATableThatReads() throws Exception {
    Random random = new Random(Fuzz.SEED);
    Set<String> committed = new HashSet<>();
    for (int kill = 0; kill < KILLS; kill++) {
      // the first one has committed by then, so there is something to lose
      String from = kill == 0 ? "COMMITTED " : "READY";
      List<String> output =
          killed(from, random.nextInt(400), "write", String.valueOf(kill * 1_000_000L));
      // what was reported as committed is there; the last one may be there without a report
      assertThat(ids("ROW ", output)).containsAll(committed);
      committed.addAll(ids("COMMITTED ", output));
    }
    assertThat(committed).isNotEmpty();
    assertThat(ids("ROW ", output("check"))).containsAll(committed);
  }

  /** Of 50 kills of writers 30 are of rotations; in a short run, one. */
  @Test
  void aKilledRotationLeavesTheTableAsItWas() throws Exception {
    assumeTrue(NIGHTLY || KILLS > 1, "left to the night");
    int kills = Math.max(1, KILLS * 30 / 50);
    Random random = new Random(Fuzz.SEED);
    String before = prepared();
    for (int kill = 0; kill < kills; kill++) {
      killed("READY", random.nextInt(600), "rotate");
      assertThat(history()).as("after kill %s", kill).isEqualTo(before);
    }
  }

  private String prepared() throws Exception {
    if (backend == Backend.HIVE) {
      output("prepare");
    } else {
      TableProcess.prepare(catalog);
    }

    return history();
  }

  private String history() throws Exception {
    if (backend == Backend.HIVE) {
      List<String> output = output("history");
      return output.get(output.size() - 1);
    }

    try (EncryptedCatalog fresh = lake.open(Map.of())) {
      return TableProcess.history(fresh);
    }
  }

  private static Set<String> ids(String word, List<String> output) {
    return output.stream()
        .filter(line -> line.startsWith(word))
        .map(line -> line.substring(word.length()))
        .collect(Collectors.toSet());
  }

  private List<String> output(String what) throws Exception {
    Process process = start(what);
    List<String> output = process.inputReader().lines().toList();
    assertThat(process.waitFor()).as(String.join("\n", output)).isZero();
    return output;
  }

  /**
   * Starts a process and kills it -9 so many milliseconds after the first line that starts with a
   * word; gives what it said.
   */
  private List<String> killed(String from, int afterMs, String... what) throws Exception {
    Process process = start(what);
    List<String> output = new ArrayList<>();
    boolean told = false;
    try (BufferedReader out = process.inputReader()) {
      for (String line = out.readLine(); line != null; line = out.readLine()) {
        output.add(line);
        if (!told && line.startsWith(from)) {
          told = true;
          // not Process.destroyForcibly, which closes the stream that is read here
          CompletableFuture.delayedExecutor(afterMs, TimeUnit.MILLISECONDS)
              .execute(process.toHandle()::destroyForcibly);
        }
      }
    }

    assertThat(process.waitFor()).as(String.join("\n", output)).isEqualTo(128 + 9);
    assertThat(output).contains("READY");
    return output;
  }

  private Process start(String... what) throws Exception {
    List<String> command = JavaCommand.of(System.getProperty("java.class.path"));
    command.add("-D" + Backend.METASTORE + "=" + folder.resolve("metastore"));
    if (backend == Backend.REST) {
      command.add("-D" + Backend.REST_URI + "=" + Backend.restUri());
    }

    command.addAll(
        List.of(TableProcess.class.getName(), what[0], backend.name(), folder.toString()));
    command.addAll(List.of(what).subList(1, what.length));
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }
}
