package io.icebergcrypto.testing;

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.ProcessBuilder.Redirect;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A server of {@code tests/servers} in a JVM of its own. It tells its port and ends with its input.
 *
 * @param port where it listens on 127.0.0.1
 */
record ServerProcess(Process process, int port) {
  /**
   * Starts a server.
   *
   * @param source its program, such as {@code RestServer.java}
   * @param jars the folder below {@code jvm/build} with its jars
   * @param ours a pattern for the jars of this class path that it runs on, too
   * @param errors where its standard error goes
   */
  static ServerProcess start(
      String source, String jars, String ours, Redirect errors, String... arguments)
      throws IOException {
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    String shared =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(jar -> jar.matches(".*/(" + ours + ")[^/]*"))
            .collect(Collectors.joining(File.pathSeparator));
    List<String> command =
        JavaCommand.of(
            root.resolve("jvm/build").resolve(jars) + "/*" + File.pathSeparator + shared);
    command.add(root.resolve("tests/servers").resolve(source).toString());
    command.addAll(List.of(arguments));
    if (jars.equals("hdfs-server")) { // of the others, Python's tests say the versions
      Tested.server("HDFS", root.resolve("jvm/build").resolve(jars), "hadoop-client-minicluster");
    }

    Process process = new ProcessBuilder(command).redirectError(errors).start();
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = out.readLine();
    if (line == null || !line.startsWith("PORT ")) {
      process.destroyForcibly();
      throw new IOException(source + " did not start: " + line);
    }

    return new ServerProcess(process, Integer.parseInt(line.substring("PORT ".length())));
  }

  /**
   * Starts another program, which ends with this JVM.
   *
   * @return where it listens, once it does
   */
  static String listening(int port, Path log, Map<String, String> environment, String... command)
      throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
    builder.environment().putAll(environment);
    Process process = builder.start();
    Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
    awaitPort(port);
    return "http://127.0.0.1:" + port;
  }

  /** A port of 127.0.0.1 on which nobody listens. */
  static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** Returns once a server listens on a port of 127.0.0.1; throws after a minute. */
  static void awaitPort(int port) throws IOException {
    for (int i = 0; ; i++) {
      try {
        new Socket(InetAddress.getLoopbackAddress(), port).close();
        return;
      } catch (IOException e) {
        if (i == 600) {
          throw e;
        }

        try {
          Thread.sleep(100);
        } catch (InterruptedException interrupted) {
          throw new IOException(interrupted);
        }
      }
    }
  }
}
