package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * moto, which imitates AWS, in a process of its own. One serves all tests of a JVM and ends with
 * it.
 */
public final class MotoServer {
  private static String uri;

  private MotoServer() {}

  /** Where it listens; the first call starts it, and logs this JVM in. */
  public static synchronized String uri() throws IOException {
    if (uri == null) {
      int port = ServerProcess.freePort();
      Path root = Path.of(System.getProperty("iceberg.crypto.root"));
      Process process =
          new ProcessBuilder(
                  List.of(
                      root.resolve(".venv/bin/moto_server").toString(),
                      "-H",
                      "127.0.0.1",
                      "-p",
                      String.valueOf(port)))
              .redirectErrorStream(true)
              .redirectOutput(Files.createTempFile("iceberg-crypto-moto", ".log").toFile())
              .start();
      Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
      ServerProcess.awaitPort(port);
      // the SDK's default chain finds them
      System.setProperty("aws.accessKeyId", "AKIAONLYFORTESTS0001");
      System.setProperty("aws.secretAccessKey", "aws-secret-only-for-tests");
      uri = "http://127.0.0.1:" + port;
    }

    return uri;
  }
}
