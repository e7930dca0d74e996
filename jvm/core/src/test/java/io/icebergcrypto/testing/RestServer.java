package io.icebergcrypto.testing;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Iceberg's REST reference server in a process of its own, as the Python tests start it. It ends
 * with this JVM.
 */
final class RestServer {
  private static Process process; // it ends when its input does, as when nothing refers to it here

  private RestServer() {}

  /** Where a server in a folder puts its tables. */
  static Path warehouse(Path folder) {
    return folder.resolve("rest-warehouse");
  }

  /**
   * Starts the server over a JDBC catalog in a folder.
   *
   * @return where it listens
   */
  static String start(Path folder) throws IOException {
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    String hadoop =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(jar -> jar.contains("hadoop-client-"))
            .collect(Collectors.joining(File.pathSeparator));
    process =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-Xmx512m",
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    root.resolve("jvm/build/rest-server") + "/*" + File.pathSeparator + hadoop,
                    root.resolve("tests/servers/RestServer.java").toString(),
                    "jdbc:sqlite:" + folder.resolve("rest.db") + "?busy_timeout=30000",
                    warehouse(folder).toString()))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = out.readLine();
    if (line == null || !line.startsWith("PORT ")) {
      process.destroyForcibly();
      throw new IOException("The REST server did not start: " + line);
    }

    return "http://127.0.0.1:" + line.substring("PORT ".length());
  }
}
