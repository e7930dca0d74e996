package io.icebergcrypto.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Servers of catalogs that keep a pointer only, each in a process of its own on 127.0.0.1. */
public enum PointerServer {
  /** AWS Glue, as moto has it, with the check of versions that moto lacks. */
  GLUE {
    @Override
    String start(Path folder) throws IOException {
      return CheckingGlue.before(MotoServer.uri());
    }

    @Override
    Map<String, String> properties(String uri) {
      return Map.of("glue.endpoint", uri, "client.region", "eu-west-1");
    }
  },

  /** Nessie, in memory. */
  NESSIE {
    @Override
    String start(Path folder) throws IOException {
      Path jar;
      try (Stream<Path> jars = Files.list(root().resolve("jvm/build/nessie-server"))) {
        jar = jars.findFirst().orElseThrow();
      }

      Tested.server("Nessie", jar.getParent(), "nessie-quarkus");

      Process process =
          run(
              folder,
              java21().orElseThrow().toString(),
              "-Xmx512m",
              "-XX:TieredStopAtLevel=1",
              "-Dquarkus.http.host=127.0.0.1",
              "-Dquarkus.http.port=0",
              "-Dquarkus.management.host=127.0.0.1",
              "-Dquarkus.management.port=0",
              "-Dquarkus.log.console.format=%m%n",
              "-Dnessie.version.store.type=IN_MEMORY",
              "-jar",
              jar.toString());
      BufferedReader out =
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
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

    @Override
    Map<String, String> properties(String uri) {
      return Map.of("uri", uri + "/api/v2", "ref", "main");
    }

    @Override
    public boolean isAvailable() {
      return java21().isPresent();
    }
  };

  private static final Pattern LISTENING =
      Pattern.compile("Listening on: (http://127\\.0\\.0\\.1:\\d+)");

  private String uri;

  abstract String start(Path folder) throws IOException;

  abstract Map<String, String> properties(String uri);

  /** Whether this machine can run it: Nessie's server needs Java 21. */
  public boolean isAvailable() {
    return true;
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

  /** The properties of a stock catalog of this kind; the first call starts the server. */
  public synchronized Map<String, String> stock(Path folder) throws IOException {
    if (uri == null) {
      uri = start(Files.createTempDirectory("iceberg-crypto"));
    }

    Map<String, String> all = new HashMap<>(properties(uri));
    all.put("type", name().toLowerCase(Locale.ROOT));
    all.put("warehouse", folder.resolve("warehouse").toString());
    all.put("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO");
    return all;
  }

  private static Path root() {
    return Path.of(System.getProperty("iceberg.crypto.root"));
  }

  private static Process run(Path folder, String... command) throws IOException {
    Process process =
        new ProcessBuilder(List.of(command))
            .redirectErrorStream(false)
            .redirectError(folder.resolve("server.err").toFile())
            .start();
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    return process;
  }
}
