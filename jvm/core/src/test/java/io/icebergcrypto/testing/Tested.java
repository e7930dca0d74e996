package io.icebergcrypto.testing;

import com.google.gson.Gson;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.IcebergBuild;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;

/**
 * Keeps what the tests really ran on, for docs/tested-versions.md, as tests/harness/used.py does
 * for Python's: in the folder that the variable ICEBERG_CRYPTO_TESTED names. Without it nothing is
 * kept.
 */
public final class Tested implements TestExecutionListener {
  private static final String FOLDER = System.getenv("ICEBERG_CRYPTO_TESTED");
  private static final Map<String, String> SERVERS = new ConcurrentSkipListMap<>();

  private static final AtomicInteger RUNNING = new AtomicInteger();

  private final Map<String, Integer> outcomes = new ConcurrentSkipListMap<>();
  private boolean isOfATest; // CatalogContractTest runs tests that are to fail

  /** A server is in use, of this version. */
  static void server(String name, String version) {
    SERVERS.put(name, version);
  }

  /** A server is in use, of the version of a jar in the folder of its jars. */
  static void server(String name, Path jars, String artifact) throws IOException {
    try (Stream<Path> all = Files.list(jars)) {
      String names = String.join(" ", all.map(jar -> jar.getFileName().toString()).toList());
      server(name, find("(?<= |^)" + artifact + "-(\\d[\\w.]*?)(?:-runner)?\\.jar", names));
    }
  }

  @Override
  public void testPlanExecutionStarted(TestPlan plan) {
    isOfATest = RUNNING.getAndIncrement() > 0;
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (test.isTest() || result.getStatus() == TestExecutionResult.Status.FAILED) {
      String outcome =
          switch (result.getStatus()) {
            case SUCCESSFUL -> "passed";
            case ABORTED -> "skipped";
            case FAILED -> "failed";
          };
      outcomes.merge(outcome, 1, Integer::sum);
    }
  }

  @Override
  public void testPlanExecutionFinished(TestPlan plan) {
    RUNNING.decrementAndGet();
    if (FOLDER == null || outcomes.isEmpty() || isOfATest) {
      return;
    }

    String classPath = System.getProperty("java.class.path").replace(File.pathSeparatorChar, ' ');
    Map<String, String> environment = new TreeMap<>();
    environment.put("Java", System.getProperty("java.version"));
    environment.put("Iceberg", IcebergBuild.version());
    environment.put("Spark", find("spark-core_[\\d.]+-([\\d.]+)\\.jar", classPath));
    environment.put("Scala", find("scala-library-([\\d.]+)\\.jar", classPath));

    Map<String, Object> kept = new TreeMap<>();
    kept.put("tests", "Java's");
    kept.put("run", UUID.randomUUID().toString());
    kept.put("date", LocalDate.now(ZoneOffset.UTC).toString());
    kept.put("environments", List.of(environment));
    kept.put("servers", SERVERS);
    kept.put("outcomes", outcomes);
    try {
      Path folder = Files.createDirectories(Path.of(FOLDER));
      Files.writeString(folder.resolve(UUID.randomUUID() + ".json"), new Gson().toJson(kept));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String find(String pattern, String text) {
    Matcher found = Pattern.compile(pattern).matcher(text);
    return found.find() ? found.group(1) : "";
  }
}
