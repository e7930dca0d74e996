package io.icebergcrypto.testing;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;

/** A Hive metastore 3.1.3 as a service in a process of its own, with locks. */
public final class MetastoreServer implements AutoCloseable {
  private final ServerProcess server;

  /** Starts the service; its database is in the folder. */
  public MetastoreServer(Path folder) throws IOException {
    this.server =
        ServerProcess.start(
            "MetastoreServer.java",
            "metastore-server",
            "hadoop-client-|slf4j-api-|jcl-over-slf4j-",
            Redirect.to(folder.resolve("metastore-service.err").toFile()),
            folder.resolve("metastore-service").toString(),
            folder.resolve("warehouse").toString());
  }

  /** What its clients are configured with; Iceberg's default is to lock. */
  public Configuration conf() {
    Configuration conf = new Configuration();
    NoChmodFileSystem.setIn(conf);
    conf.set("hive.metastore.uris", "thrift://127.0.0.1:" + server.port());
    conf.set("iceberg.hive.lock-check-min-wait-ms", "5");
    conf.set("iceberg.hive.lock-check-max-wait-ms", "50");
    return conf;
  }

  @Override
  public void close() throws IOException {
    server.process().getOutputStream().close(); // it ends when its input does
  }
}
