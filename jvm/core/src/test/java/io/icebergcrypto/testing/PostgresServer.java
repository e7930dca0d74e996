package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** A PostgreSQL server of the system's package, with a database of its own, on 127.0.0.1. */
public final class PostgresServer implements AutoCloseable {
  private static final Path DEBIAN = Path.of("/usr/lib/postgresql");

  private final Path bin;
  private final Path folder;
  private final int port;

  /** Makes the database and starts the server. */
  public PostgresServer() throws IOException {
    this.bin = programs().orElseThrow();
    // not in a folder of JUnit's, into which a server that is not root cannot look
    this.folder = Files.createTempDirectory("iceberg-crypto-postgres");
    if (isRoot()) {
      run(List.of("chown", "nobody", folder.toString()));
    }

    run("initdb", "-A", "trust", "-U", "iceberg", "--no-sync");
    this.port = ServerProcess.freePort();
    String options = String.format("-h 127.0.0.1 -p %d -k ''", port);
    // waits until the server takes connections: its port is open before
    run("pg_ctl", "start", "-w", "-l", folder.resolve("server.log"), "-o", options);
    String pid = Files.readAllLines(folder.resolve("data/postmaster.pid")).get(0);
    ProcessHandle server = ProcessHandle.of(Long.parseLong(pid)).orElseThrow();
    Runtime.getRuntime().addShutdownHook(new Thread(server::destroyForcibly));
    Tested.server("PostgreSQL", version());
  }

  private String version() throws IOException {
    try (Connection connection = DriverManager.getConnection(uri())) {
      return connection.getMetaData().getDatabaseProductVersion();
    } catch (SQLException e) {
      throw new IOException(e);
    }
  }

  /** Where Debian's package has the programs, of the newest version that is installed. */
  public static Optional<Path> programs() throws IOException {
    if (!Files.isDirectory(DEBIAN)) {
      return Optional.empty();
    }

    try (Stream<Path> versions = Files.list(DEBIAN)) {
      return versions
          .map(version -> version.resolve("bin"))
          .filter(bin -> Files.isExecutable(bin.resolve("initdb")))
          .max((a, b) -> Integer.compare(version(a), version(b)));
    }
  }

  private static int version(Path bin) {
    return Integer.parseInt(bin.getParent().getFileName().toString());
  }

  /** Its database, for JDBC. */
  public String uri() {
    return "jdbc:postgresql://127.0.0.1:" + port + "/postgres?user=iceberg";
  }

  @Override
  public void close() throws IOException {
    run("pg_ctl", "stop", "-w", "-m", "fast"); // which does not wait for clients
    run(List.of("rm", "-r", folder.toString()));
  }

  /** Runs a program on the data. PostgreSQL's refuse to run as root. */
  private void run(String program, Object... options) throws IOException {
    List<String> command = new ArrayList<>();
    if (isRoot()) {
      command.addAll(List.of("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"));
    }

    command.addAll(
        List.of(bin.resolve(program).toString(), "-D", folder.resolve("data").toString()));
    Stream.of(options).map(String::valueOf).forEach(command::add);
    run(command);
  }

  private static boolean isRoot() {
    return System.getProperty("user.name").equals("root");
  }

  private static void run(List<String> command) throws IOException {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    if (process.onExit().join().exitValue() != 0) {
      throw new IOException(String.join(" ", command) + ": " + output);
    }
  }
}
