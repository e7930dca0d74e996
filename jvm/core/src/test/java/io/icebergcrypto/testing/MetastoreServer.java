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
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** A Hive metastore 3.1.3 as a service in a process of its own, with locks. */
public final class MetastoreServer implements AutoCloseable {
  private final Process process;
  private final int port;

  /** Starts the service; its database is in the folder. */
  public MetastoreServer(Path folder) throws IOException {
    Path root = Path.of(System.getProperty("iceberg.crypto.root"));
    String hadoopAndLogs =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(jar -> jar.matches(".*/(hadoop-client-|slf4j-api-|jcl-over-slf4j-)[^/]*"))
            .collect(Collectors.joining(File.pathSeparator));
    this.process =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                    "-Xmx512m",
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    root.resolve("jvm/build/metastore-server")
                        + "/*"
                        + File.pathSeparator
                        + hadoopAndLogs,
                    root.resolve("tests/servers/MetastoreServer.java").toString(),
                    folder.resolve("metastore-service").toString(),
                    folder.resolve("warehouse").toString()))
            .redirectError(folder.resolve("metastore-service.err").toFile())
            .start();
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = out.readLine();
    if (line == null || !line.startsWith("PORT ")) {
      process.destroyForcibly();
      throw new IOException("The metastore did not start: " + line);
    }

    this.port = Integer.parseInt(line.substring("PORT ".length()));
  }

  /** What its clients are configured with; Iceberg's default is to lock. */
  public Configuration conf() {
    Configuration conf = new Configuration();
    conf.setClass("fs.file.impl", NoChmodFileSystem.class, FileSystem.class);
    conf.set("hive.metastore.uris", "thrift://127.0.0.1:" + port);
    conf.set("iceberg.hive.lock-check-min-wait-ms", "5");
    conf.set("iceberg.hive.lock-check-max-wait-ms", "50");
    return conf;
  }

  @Override
  public void close() throws IOException {
    process.getOutputStream().close(); // it ends when its input does
  }
}
