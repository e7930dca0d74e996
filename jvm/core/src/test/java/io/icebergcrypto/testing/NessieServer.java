package io.icebergcrypto.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Nessie's server, in memory, in a process of its own on 127.0.0.1 that ends with this JVM. It
 * needs Java 21.
 */
public final class NessieServer {
  private static final Pattern LISTENING =
      Pattern.compile("Listening on: (http://127\\.0\\.0\\.1:\\d+)");

  private NessieServer() {}

  /** Whether this machine can run it. */
  public static boolean isAvailable() {
    return java21().isPresent();
  }

  /**
   * Starts it.
   *
   * @param settings beside those that every test's server has
   * @return where it listens
   */
  public static String start(Map<String, String> settings) throws IOException {
    Path jar;
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    try (Stream<Path> jars = Files.list(root.resolve("jvm/build/nessie-server"))) {
      jar = jars.findFirst().orElseThrow();
    }

    Tested.server("Nessie", jar.getParent(), "nessie-quarkus");

    List<String> command =
        new ArrayList<>(
            List.of(
                java21().orElseThrow().toString(),
                "-Xmx512m",
                "-XX:TieredStopAtLevel=1",
                "-Dquarkus.http.host=127.0.0.1",
                "-Dquarkus.http.port=0",
                "-Dquarkus.management.host=127.0.0.1",
                "-Dquarkus.management.port=0",
                "-Dquarkus.log.console.format=%m%n",
                "-Dnessie.version.store.type=IN_MEMORY"));
    settings.forEach((name, value) -> command.add("-D" + name + "=" + value));
    command.addAll(List.of("-jar", jar.toString()));
    Process process =
        new ProcessBuilder(command)
            .redirectError(Files.createTempFile("iceberg-crypto-nessie", ".err").toFile())
            .start();
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    StringBuilder all = new StringBuilder();
    for (String line = out.readLine(); line != null; line = out.readLine()) {
      Matcher listening = LISTENING.matcher(line);
      if (listening.find()) {
        Thread rest = new Thread(() -> out.lines().forEach(ignored -> {}));
        rest.setDaemon(true);
        rest.start();
        return listening.group(1);
      }

      all.append(line).append('\n');
    }

    throw new IOException("Nessie did not start: " + all);
  }

  /** The java of a JDK of 21 or later, beside the one that runs this. */
  private static Optional<Path> java21() {
    Path parent = Path.of(System.getProperty("java.home")).toAbsolutePath().getParent();
    try (Stream<Path> all = Files.list(parent)) {
      return all.filter(home -> version(home) >= 21)
          .map(home -> home.resolve("bin").resolve("java"))
          .findFirst();
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  private static int version(Path home) {
    try {
      Matcher version =
          Pattern.compile("JAVA_VERSION=\"(\\d+)")
              .matcher(Files.readString(home.resolve("release")));
      return version.find() ? Integer.parseInt(version.group(1)) : 0;
    } catch (IOException e) {
      return 0;
    }
  }
}
