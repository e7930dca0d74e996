import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.crypto.key.kms.server.KMSWebServer;

/**
 * Hadoop KMS on 127.0.0.1 and a free port, over a keystore file.
 *
 * <p>Arguments: its folder, which has kms-acls.xml and log4j.properties in it; then further
 * settings as NAME=VALUE. Prints one line, {@code PORT n}, once it answers; ends when its standard
 * input does, so that it cannot outlive the tests.
 */
public final class HadoopKmsServer {
  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]);
    int port = freePort();
    Map<String, String> settings = new TreeMap<>();
    settings.put("hadoop.kms.http.host", "127.0.0.1");
    settings.put("hadoop.kms.http.port", String.valueOf(port));
    settings.put("hadoop.kms.key.provider.uri", "jceks://file@" + folder + "/keys.jceks");
    settings.put("hadoop.tmp.dir", folder + "/tmp");
    for (int i = 1; i < args.length; i++) {
      String[] setting = args[i].split("=", 2);
      settings.put(setting[0], setting[1]);
    }

    write(folder.resolve("kms-site.xml"), settings);
    write(folder.resolve("core-site.xml"), settings);
    System.setProperty("kms.config.dir", folder.toString());
    System.setProperty(
        "log4j.configuration", folder.resolve("log4j.properties").toUri().toString());
    Thread server = new Thread(HadoopKmsServer::serve);
    server.setDaemon(true);
    server.start();
    awaitAnswer(port);
    System.out.println("PORT " + port);

    awaitEndOfInput();
    Runtime.getRuntime().halt(0);
  }

  private static void serve() {
    try {
      KMSWebServer.main(new String[0]);
    } catch (Exception e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private static void write(Path file, Map<String, String> settings) throws IOException {
    Configuration written = new Configuration(false);
    settings.forEach(written::set);
    try (var out = Files.newOutputStream(file)) {
      written.writeXml(out);
    }
  }

  /** Any answer: nobody has logged in. */
  private static void awaitAnswer(int port) throws Exception {
    URI uri = URI.create("http://127.0.0.1:" + port + "/kms/v1/keys/names");
    while (true) {
      HttpURLConnection connection = (HttpURLConnection) uri.toURL().openConnection();
      try {
        connection.getResponseCode();
        return;
      } catch (IOException e) {
        Thread.sleep(20);
      } finally {
        connection.disconnect();
      }
    }
  }

  private static int freePort() {
    try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return probe.getLocalPort();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
