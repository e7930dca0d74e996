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
import org.apache.hadoop.conf.Configuration;

/**
 * A server of {@code tests/servers} in a JVM of its own. It tells its port and ends with its input.
 *
 * @param port where it listens on 127.0.0.1
 */
public record ServerProcess(Process process, int port) implements AutoCloseable {
  private static final String ON_HADOOP = "hadoop-client-|slf4j-api-|jcl-over-slf4j-";

  /** HDFS, whose rename never replaces a file, unlike that of a local disk. */
  public static ServerProcess hdfs(Path folder) throws IOException {
    Redirect errors = Redirect.to(folder.resolve("hdfs.err").toFile());
    String blocks = folder.resolve("hdfs").toString();
    return start("HdfsServer.java", "hdfs-server", ON_HADOOP, errors, blocks);
  }

  /** A Hive metastore 3.1.3 as a service, with locks. */
  public static ServerProcess metastore(Path folder) throws IOException {
    return start(
        "MetastoreServer.java",
        "metastore-server",
        ON_HADOOP,
        Redirect.to(folder.resolve("metastore-service.err").toFile()),
        folder.resolve("metastore-service").toString(),
        folder.resolve("warehouse").toString());
  }

  /** What clients of such a metastore are configured with; Iceberg's default is to lock. */
  public Configuration metastoreConf() {
    Configuration conf = new Configuration();
    NoChmodFileSystem.setIn(conf);
    conf.set("hive.metastore.uris", "thrift://127.0.0.1:" + port);
    conf.set("iceberg.hive.lock-check-min-wait-ms", "5");
    conf.set("iceberg.hive.lock-check-max-wait-ms", "50");
    return conf;
  }

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

  @Override
  public void close() throws IOException {
    process.getOutputStream().close(); // it ends when its input does
    process.onExit().join();
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
