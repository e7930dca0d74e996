package io.icebergcrypto.testing;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * Stands before moto's Glue and does what the real Glue does and moto does not: an update that
 * names a version which is not the table's is refused. Without it two writers lose commits.
 */
final class CheckingGlue {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String TARGET = "X-Amz-Target";
  private static final List<String> HEADERS =
      List.of(TARGET, "Content-Type", "Authorization", "X-Amz-Date");

  private final HttpClient client = HttpClient.newHttpClient();
  private final URI moto;

  private CheckingGlue(URI moto) {
    this.moto = moto;
  }

  /** Starts it on 127.0.0.1; returns its address. It ends with this JVM. */
  static String before(String moto) throws IOException {
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(
        Executors.newCachedThreadPool(
            task -> {
              Thread thread = new Thread(task);
              thread.setDaemon(true);
              return thread;
            }));
    server.createContext("/", new CheckingGlue(URI.create(moto))::handle);
    server.start();
    return "http://127.0.0.1:" + server.getAddress().getPort();
  }

  private void handle(HttpExchange exchange) throws IOException {
    byte[] body = exchange.getRequestBody().readAllBytes();
    String target = exchange.getRequestHeaders().getFirst(TARGET);
    if ("AWSGlue.UpdateTable".equals(target)) {
      synchronized (this) { // nobody else updates between the look and the update
        if (!isOfTheVersionThatItNames(exchange, body)) {
          answer(
              exchange,
              400,
              JSON.writeValueAsBytes(
                  Map.of(
                      "__type",
                      "ConcurrentModificationException",
                      "Message",
                      "Update table failed due to concurrent modifications.")));
          return;
        }

        forward(exchange, body);
      }
    } else {
      forward(exchange, body);
    }
  }

  private boolean isOfTheVersionThatItNames(HttpExchange exchange, byte[] body) throws IOException {
    JsonNode update = JSON.readTree(body);
    if (!update.has("VersionId")) {
      return true;
    }

    byte[] question =
        JSON.writeValueAsBytes(
            Map.of(
                "DatabaseName",
                update.get("DatabaseName").asText(),
                "Name",
                update.at("/TableInput/Name").asText()));
    HttpResponse<byte[]> table = send(exchange, "AWSGlue.GetTable", question);
    return JSON.readTree(table.body()).at("/Table/VersionId").equals(update.get("VersionId"));
  }

  private void forward(HttpExchange exchange, byte[] body) throws IOException {
    HttpResponse<byte[]> response =
        send(exchange, exchange.getRequestHeaders().getFirst(TARGET), body);
    answer(exchange, response.statusCode(), response.body());
  }

  private HttpResponse<byte[]> send(HttpExchange exchange, String target, byte[] body)
      throws IOException {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(moto).POST(HttpRequest.BodyPublishers.ofByteArray(body));
    for (String header : HEADERS) {
      String value = header.equals(TARGET) ? target : exchange.getRequestHeaders().getFirst(header);
      if (value != null) {
        request.header(header, value);
      }
    }

    try {
      return client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UncheckedIOException(new IOException(e));
    }
  }

  private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
    exchange.getResponseHeaders().set("Content-Type", "application/x-amz-json-1.1");
    exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
