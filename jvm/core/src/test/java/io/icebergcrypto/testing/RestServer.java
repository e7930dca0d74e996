package io.icebergcrypto.testing;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;

/**
 * Iceberg's REST reference server in a process of its own, as the Python tests start it. It ends
 * with this JVM.
 */
final class RestServer {
  // it ends when its input does, as when nothing refers to it here
  private static ServerProcess server;

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
    server =
        ServerProcess.start(
            "RestServer.java",
            "rest-server",
            "hadoop-client-",
            Redirect.DISCARD,
            "jdbc:sqlite:" + folder.resolve("rest.db") + "?busy_timeout=30000",
            warehouse(folder).toString());
    return "http://127.0.0.1:" + server.port();
  }
}
