import java.io.IOException;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import org.apache.hadoop.crypto.key.RangerKeyStoreProvider;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.webapp.WebAppContext;

/**
 * Ranger KMS on 127.0.0.1 and a free port: its web application, as its own web.xml has it, in Jetty.
 *
 * <p>Ranger starts it in Tomcat, by a program that is not on Maven Central.
 *
 * <p>Argument: its folder, which has its settings and log4j.properties in it and is on the class
 * path. Prints one line, {@code PORT n}, once it answers; ends when its standard input does, so
 * that it cannot outlive the tests.
 */
public final class RangerKmsServer {
  public static void main(String[] args) throws Exception {
    PrintStream out = System.out;
    System.setOut(System.err); // its database's library speaks there
    Path folder = Path.of(args[0]);
    System.setProperty("kms.config.dir", folder.toString());

    WebAppContext application = new WebAppContext(folder.toString(), "/kms");
    application.setDescriptor(
        RangerKeyStoreProvider.class.getResource("/WEB-INF/web.xml").toString());
    application.setParentLoaderPriority(true);
    application.setTempDirectory(folder.resolve("jetty").toFile());
    application.setThrowUnavailableOnStartupException(true);
    Server server = new Server(new InetSocketAddress("127.0.0.1", 0));
    server.setHandler(application);
    try {
      server.start();
    } catch (Exception e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
    out.println("PORT " + ((ServerConnector) server.getConnectors()[0]).getLocalPort());

    awaitEndOfInput();
    Runtime.getRuntime().halt(0);
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
