import java.io.IOException;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

/**
 * Iceberg's REST reference server (RESTCatalogAdapter over a JDBC catalog, as Iceberg's own
 * RESTCatalogServer has it) on 127.0.0.1 and a free port. RESTCatalogServer itself listens on every
 * address and cannot be told otherwise.
 *
 * <p>Arguments: JDBC URL, warehouse folder. Prints one line, {@code PORT n}, once it answers; ends
 * when its standard input does, so that it cannot outlive the tests.
 */
public final class RestServer {
  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put(CatalogProperties.URI, args[0]);
    properties.put(CatalogProperties.WAREHOUSE_LOCATION, args[1]);
    properties.put("jdbc.schema-version", "V1");
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize("rest_backend", properties);

    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost(InetAddress.getLoopbackAddress().getHostAddress());
    connector.setPort(0);
    server.addConnector(connector);
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(
        new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    server.setHandler(context);
    server.start();
    System.out.println("PORT " + connector.getLocalPort());

    awaitEndOfInput();
    server.stop();
    catalog.close();
    System.exit(0);
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
