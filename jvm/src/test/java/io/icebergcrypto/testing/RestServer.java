package io.icebergcrypto.testing;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Iceberg's REST reference server in a process of its own, as the Python tests start it. */
public final class RestServer implements AutoCloseable {
  private final Process process;
  private final String uri;

  private RestServer(Process process, String uri) {
    this.process = process;
    this.uri = uri;
  }

  /** Starts the server over a JDBC catalog in a folder. */
  public static RestServer start(Path folder) throws IOException {
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    String hadoop =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(jar -> jar.contains("hadoop-client-"))
            .collect(Collectors.joining(File.pathSeparator));
    Process process =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-Xmx512m",
                    "-cp",
                    root.resolve("jvm/build/rest-server") + "/*" + File.pathSeparator + hadoop,
                    root.resolve("tests/servers/RestServer.java").toString(),
                    "jdbc:sqlite:" + folder.resolve("rest.db") + "?busy_timeout=30000",
                    folder.resolve("rest-warehouse").toString()))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = out.readLine();
    if (line == null || !line.startsWith("PORT ")) {
      process.destroyForcibly();
      throw new IOException("The REST server did not start: " + line);
    }

    return new RestServer(process, "http://127.0.0.1:" + line.substring("PORT ".length()));
  }

  /** Where it listens. */
  public String uri() {
    return uri;
  }

  @Override
  public void close() throws IOException {
    process.getOutputStream().close(); // it ends when its input does
    try {
      if (!process.waitFor(10, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
