import java.io.IOException;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.CatalogProperties;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.MetadataUpdate.AddEncryptionKey;
import org.apache.iceberg.SnapshotParser;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadataParser;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.exceptions.RESTException;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.HTTPHeaders;
import org.apache.iceberg.rest.HTTPRequest;
import org.apache.iceberg.rest.ImmutableHTTPRequest;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.apache.iceberg.rest.RESTResponse;
import org.apache.iceberg.rest.credentials.ImmutableCredential;
import org.apache.iceberg.rest.requests.CreateTableRequest;
import org.apache.iceberg.rest.requests.UpdateTableRequest;
import org.apache.iceberg.rest.responses.ErrorResponse;
import org.apache.iceberg.rest.responses.LoadTableResponse;
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
 *
 * <p>It overwrites a registered table, which JdbcCatalog does not. A client that sends the header
 * {@code X-Refuse} ({@code header.X-Refuse} in its properties) meets a server that refuses: {@code
 * stage-create 406 UnsupportedOperationException} is what, the status and the error's type. What
 * else: {@code add-encryption-key}; {@code both}, with that answer to either; {@code key}, with
 * that answer to a key and 400 to a staged create; {@code key-id}, with that answer to any table with
 * a key id, where a commit is made all the same, as by Rustberg. To the type {@code InvalidTypeIdException} belongs
 * Jackson's message, which Nessie sends. With the header {@code X-Forget} it creates tables without
 * that property. With {@code X-Tell: format-version} it says that it makes tables with version 2; with
 * {@code X-Tell: no-location} its answers have no {@code metadata-location}. With {@code X-Lose} it takes a commit and drops, in silence, its
 * {@code encryption-keys}, or the {@code key-id} of its snapshots. With {@code X-Require: token} it
 * answers only to those who have logged in by OAuth2; with {@code X-Vend: prefix} each table comes
 * with configuration and credentials of its own, of which {@code prefix-<table>} is the secret.
 */
public final class RestServer {
  public static void main(String[] args) throws Exception {
    Map<String, String> properties = new HashMap<>();
    properties.put(CatalogProperties.URI, args[0]);
    properties.put(CatalogProperties.WAREHOUSE_LOCATION, args[1]);
    properties.put("jdbc.schema-version", "V1");
    JdbcCatalog catalog = new Overwriting();
    catalog.setConf(new Configuration());
    catalog.initialize("rest_backend", properties);

    Server server = new Server();
    ServerConnector connector = new ServerConnector(server);
    connector.setHost(InetAddress.getLoopbackAddress().getHostAddress());
    connector.setPort(0);
    server.addConnector(connector);
    ServletContextHandler context = new ServletContextHandler(ServletContextHandler.NO_SESSIONS);
    context.addServlet(new ServletHolder(new RESTCatalogServlet(new Refusing(catalog))), "/*");
    server.setHandler(context);
    server.start();
    System.out.println("PORT " + connector.getLocalPort());

    awaitEndOfInput();
    server.stop();
    catalog.close();
    System.exit(0);
  }

  private static final class Overwriting extends JdbcCatalog {
    @Override
    public Table registerTable(TableIdentifier identifier, String metadataFile, boolean overwrite) {
      if (overwrite) {
        dropTable(identifier, false);
      }

      return registerTable(identifier, metadataFile);
    }
  }

  private static final class Refusing extends RESTCatalogAdapter {
    private Refusing(JdbcCatalog catalog) {
      super(catalog);
    }

    @Override
    protected <T extends RESTResponse> T execute(
        HTTPRequest request,
        Class<T> responseType,
        Consumer<ErrorResponse> errorHandler,
        Consumer<Map<String, String>> responseHeaders) {
      String[] refused =
          request
              .headers()
              .firstEntry("X-Refuse")
              .map(HTTPHeaders.HTTPHeader::value)
              .orElse("none 0 none")
              .split(" ");
      boolean stage = request.body() instanceof CreateTableRequest create && create.stageCreate();
      boolean key =
          request.body() instanceof UpdateTableRequest update
              && update.updates().stream()
                  .anyMatch(AddEncryptionKey.class::isInstance);
      boolean keyId =
          request.body() instanceof CreateTableRequest create
                  && create.properties().containsKey("encryption.key-id")
              || request.body() instanceof UpdateTableRequest update
                  && update.updates().stream()
                      .anyMatch(
                          one ->
                              one instanceof MetadataUpdate.SetProperties set
                                  && set.updated().containsKey("encryption.key-id"));
      boolean refuses =
          switch (refused[0]) {
            case "key-id" -> keyId;
            case "stage-create" -> stage;
            case "add-encryption-key" -> key;
            case "both", "key" -> stage || key;
            default -> false;
          };
      if (refuses) {
        int status = stage && refused[0].equals("key") ? 400 : Integer.parseInt(refused[1]);
        String what = stage ? "stage-create" : "add-encryption-key";
        if (refused[0].equals("key-id")) {
          what = "encryption.key-id";
          if (request.body() instanceof UpdateTableRequest) {
            super.execute(request, responseType, errorHandler, responseHeaders);
          }
        }

        String message =
            refused[2].equals("InvalidTypeIdException")
                ? "Could not resolve type id '" + what + "' as a subtype of `Update`: known are []"
                : what + " is refused here";
        errorHandler.accept(
            ErrorResponse.builder()
                .responseCode(status)
                .withType(refused[2])
                .withMessage(message)
                .build());
        throw new RESTException("%s", message);
      }

      if (!loggedIn(request)) {
        errorHandler.accept(
            ErrorResponse.builder()
                .responseCode(401)
                .withType("NotAuthorizedException")
                .withMessage("no token of this server")
                .build());
        throw new RESTException("no token of this server");
      }

      T response =
          super.execute(
              withoutKeys(withoutProperty(request)), responseType, errorHandler, responseHeaders);
      String tells =
          request.headers().firstEntry("X-Tell").map(HTTPHeaders.HTTPHeader::value).orElse("");
      if (response instanceof LoadTableResponse table
          && (tells.equals("no-location")
              || tells.equals("format-version") && request.body() instanceof CreateTableRequest)) {
        return responseType.cast(told(table, tells.equals("format-version")));
      }

      String prefix =
          request.headers().firstEntry("X-Vend").map(HTTPHeaders.HTTPHeader::value).orElse(null);
      return prefix != null && response instanceof LoadTableResponse table
          ? responseType.cast(vended(table, prefix))
          : response;
    }

    private static boolean loggedIn(HTTPRequest request) {
      boolean required = request.headers().firstEntry("X-Require").isPresent();
      return !required
          || request.path().endsWith("oauth/tokens")
          || request
              .headers()
              .firstEntry("Authorization")
              .filter(header -> header.value().startsWith("Bearer client-credentials-token:"))
              .isPresent();
    }

    private static LoadTableResponse told(LoadTableResponse table, boolean old) {
      String location = old ? table.metadataLocation() : null;
      String json = TableMetadataParser.toJson(table.tableMetadata());
      String told = old ? json.replace("\"format-version\":3", "\"format-version\":2") : json;
      return LoadTableResponse.builder()
          .withTableMetadata(TableMetadataParser.fromJson(location, told))
          .addAllConfig(table.config())
          .build();
    }

    private static LoadTableResponse vended(LoadTableResponse table, String prefix) {
      String location = table.tableMetadata().location();
      String secret = prefix + "-" + location.substring(location.lastIndexOf('/') + 1);
      return LoadTableResponse.builder()
          .withTableMetadata(table.tableMetadata())
          .addAllConfig(table.config())
          .addConfig("s3.secret-access-key", secret)
          .addCredential(
              ImmutableCredential.builder()
                  .prefix(location)
                  .putConfig("s3.secret-access-key", secret)
                  .build())
          .build();
    }

    private static HTTPRequest withoutProperty(HTTPRequest request) {
      String forgotten =
          request.headers().firstEntry("X-Forget").map(HTTPHeaders.HTTPHeader::value).orElse(null);
      if (forgotten == null || !(request.body() instanceof CreateTableRequest create)) {
        return request;
      }

      Map<String, String> kept = new HashMap<>(create.properties());
      kept.remove(forgotten);
      CreateTableRequest.Builder forgetful =
          CreateTableRequest.builder()
              .withName(create.name())
              .withSchema(create.schema())
              .withPartitionSpec(create.spec())
              .withWriteOrder(create.writeOrder())
              .withLocation(create.location())
              .setProperties(kept);
      return ImmutableHTTPRequest.builder()
          .from(request)
          .body(create.stageCreate() ? forgetful.stageCreate().build() : forgetful.build())
          .build();
    }
  }

  private static HTTPRequest withoutKeys(HTTPRequest request) {
    String lost =
        request.headers().firstEntry("X-Lose").map(HTTPHeaders.HTTPHeader::value).orElse("");
    if (lost.isEmpty() || !(request.body() instanceof UpdateTableRequest update)) {
      return request;
    }

    List<MetadataUpdate> kept =
        update.updates().stream()
            .filter(one -> !lost.equals("encryption-keys") || !(one instanceof AddEncryptionKey))
            .map(one -> lost.equals("key-id") ? withoutKeyId(one) : one)
            .toList();
    return ImmutableHTTPRequest.builder()
        .from(request)
        .body(new UpdateTableRequest(update.requirements(), kept))
        .build();
  }

  private static MetadataUpdate withoutKeyId(MetadataUpdate update) {
    return update instanceof MetadataUpdate.AddSnapshot added
        ? new MetadataUpdate.AddSnapshot(
            SnapshotParser.fromJson(
                SnapshotParser.toJson(added.snapshot(), false)
                    .replaceFirst(",\"key-id\":\"[^\"]*\"", "")))
        : update;
  }

  private static void awaitEndOfInput() throws IOException {
    while (System.in.read() >= 0) {
      // The parent says nothing: it only closes the pipe, or dies.
    }
  }
}
