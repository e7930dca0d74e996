package io.icebergcrypto.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

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
      String program = root.resolve(".venv/bin/moto_server").toString();
      String[] command = {program, "-H", "127.0.0.1", "-p", String.valueOf(port)};
      Path log = Files.createTempFile("iceberg-crypto-moto", ".log");
      uri = ServerProcess.listening(port, log, Map.of(), command);
      // the SDK's default chain finds them
      System.setProperty("aws.accessKeyId", "AKIAONLYFORTESTS0001");
      System.setProperty("aws.secretAccessKey", "aws-secret-only-for-tests");
    }

    return uri;
  }
}
