package io.icebergcrypto.testing;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.file.Path;

/** HDFS in a process of its own. Unlike a local disk, its rename never replaces a file. */
public final class HdfsServer implements AutoCloseable {
  private final ServerProcess server;

  /** Starts it; its blocks are in the folder. */
  public HdfsServer(Path folder) throws IOException {
    this.server =
        ServerProcess.start(
            "HdfsServer.java",
            "hdfs-server",
            "hadoop-client-|slf4j-api-|jcl-over-slf4j-",
            Redirect.to(folder.resolve("hdfs.err").toFile()),
            folder.resolve("hdfs").toString());
  }

  /** Where its files are. */
  public String uri() {
    return "hdfs://127.0.0.1:" + server.port();
  }

  @Override
  public void close() throws IOException {
    server.process().getOutputStream().close(); // it ends when its input does
    server.process().onExit().join();
  }
}
