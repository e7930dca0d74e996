package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Rustberg, a REST catalog on iceberg-rust, in a process of its own that ends with this JVM. */
public final class RustbergServer {
  private RustbergServer() {}

  /** What {@code dev/rustberg.sh} built, if it could. */
  private static Path program() throws IOException {
    Path script = Path.of(System.getProperty("iceberg.crypto.root"), "dev", "rustberg.sh");
    Process process = new ProcessBuilder(script.toString(), "path").start();
    return Path.of(
        new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip());
  }

  /** Whether it is there. */
  public static boolean isAvailable() throws IOException {
    return Files.exists(program());
  }

  /**
   * Starts it.
   *
   * @return where it listens
   */
  public static String start(Path warehouse) throws IOException {
    Path program = program();
    Tested.server("REST: Rustberg", program.getFileName().toString().replace("rustberg-", ""));
    int port = ServerProcess.freePort();
    return ServerProcess.listening(
        port,
        Files.createTempFile("iceberg-crypto-rustberg", ".log"),
        Map.of(),
        program.toString(),
        "--dev",
        "--no-auth",
        "--insecure-http",
        "--host=127.0.0.1",
        "--port=" + port,
        "--catalog-url=memory://",
        "--warehouse=" + warehouse.toUri());
  }
}
