package io.icebergcrypto.testing;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.LoginFailedException;
import io.icebergcrypto.testing.NumberedCalls.Kind;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A proxy in front of a REST catalog's server. It passes each request on, so that the server does
 * what it was asked for, and then breaks the answers to some.
 */
public final class BrokenAnswers implements AutoCloseable {
  /** How long the client waits, in milliseconds, for {@link Fault#LATE}. */
  public static final int CLIENT_WAITS_MS = 2500;

  private static final List<String> PASSED_ON =
      List.of("content-type", "authorization", "x-iceberg-access-delegation");

  /** What becomes of an answer. */
  public enum Fault {
    /** The connection ends. */
    LOST,
    /** It comes after the client's time limit. */
    LATE,
    /** Half of it comes. */
    CUT,
    /** It has no body. */
    EMPTY,
    /** It is not JSON, as from a portal. */
    HTML,
    /** It is JSON, and no table. */
    NO_TABLE,
    /** A table of a format that no Iceberg knows. */
    NEWER_FORMAT,
    /** Another table's metadata. */
    OTHER_TABLE,
    /** What a gateway says for a server that does not answer. */
    BAD_GATEWAY,
    /** What the second attempt of a client below is told, which tries again by itself. */
    CONFLICT,
    /** What a gateway is told that sends the request again. */
    TWICE,
    /** The earlier table, as a cache or a replica that lags has it. */
    STALE
  }

  private final HttpServer proxy;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final HttpClient client = HttpClient.newHttpClient();
  private final AtomicInteger broken = new AtomicInteger();
  private volatile String server;
  private volatile Fault fault;
  private volatile String requests = "none";
  private volatile String overtaken = "none";
  private volatile Runnable rival;
  private final Map<String, byte[]> lastGood = new ConcurrentHashMap<>();

  /**
   * Starts one.
   *
   * @param server where the server listens
   */
  public BrokenAnswers(String server) throws IOException {
    this.server = server;
    this.proxy = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    proxy.setExecutor(threads);
    proxy.createContext("/", this::pass);
    proxy.start();
  }

  /** Where it listens. */
  public String uri() {
    return "http://127.0.0.1:" + proxy.getAddress().getPort();
  }

  /**
   * Breaks answers from now on.
   *
   * @param regex the requests, such as {@code POST .*&#47;tables/t}
   */
  public void breaks(String regex, Fault newFault) {
    this.fault = newFault;
    this.requests = regex;
    broken.set(0);
  }

  /** Has another client act just before the next of such requests reaches the server. */
  public void overtakes(String regex, Runnable newRival) {
    this.rival = newRival;
    this.overtaken = regex;
  }

  /** Stops breaking; returns how many answers were broken. */
  public int repaired() {
    this.requests = "none";
    return broken.get();
  }

  private void pass(HttpExchange exchange) throws IOException {
    try (exchange) {
      HttpRequest.Builder request =
          HttpRequest.newBuilder(URI.create(server + exchange.getRequestURI()))
              .method(
                  exchange.getRequestMethod(),
                  HttpRequest.BodyPublishers.ofByteArray(exchange.getRequestBody().readAllBytes()));
      exchange
          .getRequestHeaders()
          .forEach(
              (name, values) -> {
                if (PASSED_ON.contains(name.toLowerCase()) || name.startsWith("X-")) {
                  values.forEach(value -> request.header(name, value));
                }
              });
      String line = exchange.getRequestMethod() + " " + exchange.getRequestURI().getPath();
      if (line.matches(overtaken)) {
        this.overtaken = "none";
        rival.run();
      }

      HttpResponse<byte[]> answer = numbered(request.build());
      if (answer != null && fault == Fault.TWICE && line.matches(requests)) {
        answer = numbered(request.build());
      }

      if (answer == null) {
        String type = "{\"error\":{\"message\":\"the token has expired\",";
        answer(exchange, 401, bytes(type + "\"type\":\"NotAuthorizedException\",\"code\":401}}"));
        return;
      }

      if (line.matches(requests)) {
        broken.incrementAndGet();
        answerBroken(exchange, answer);
      } else {
        if (answer.statusCode() == 200) {
          lastGood.put(exchange.getRequestURI().getPath(), answer.body());
        }

        answer(exchange, answer.statusCode(), answer.body());
      }
    } catch (InterruptedException e) {
      throw new IOException(e);
    }
  }

  /** The server's answer; null when the login has expired. */
  private HttpResponse<byte[]> numbered(HttpRequest request) throws IOException {
    boolean reads = List.of("GET", "HEAD").contains(request.method());
    String path = request.uri().getPath();
    NumberedCalls.Call<HttpResponse<byte[]>, Exception> call =
        () -> client.send(request, HttpResponse.BodyHandlers.ofByteArray());
    try {
      if (path.endsWith("/metrics")) { // sent in a thread of its own, whenever
        return call.make();
      }

      return NumberedCalls.of(
          reads ? Kind.GET : Kind.POST,
          path,
          call,
          (kind, text) ->
              kind == NumberedCalls.Fault.EXPIRED
                  ? new LoginFailedException("the token has expired", "Get another one.")
                  : new IOException(text));
    } catch (LoginFailedException e) {
      return null;
    } catch (IOException e) {
      throw e;
    } catch (Exception e) {
      throw new IOException(e);
    }
  }

  private void answerBroken(HttpExchange exchange, HttpResponse<byte[]> answer)
      throws IOException, InterruptedException {
    String body = new String(answer.body(), StandardCharsets.UTF_8);
    switch (fault) {
      case LOST -> {} // closed
      case LATE -> {
        Thread.sleep(CLIENT_WAITS_MS + 1000);
        answer(exchange, answer.statusCode(), answer.body());
      }
      case CUT -> {
        exchange.sendResponseHeaders(answer.statusCode(), answer.body().length);
        exchange.getResponseBody().write(answer.body(), 0, answer.body().length / 2);
        exchange.getResponseBody().flush();
      }
      case EMPTY -> answer(exchange, answer.statusCode(), new byte[0]);
      case HTML -> answer(exchange, 200, bytes("<html>Please log in</html>"));
      case NO_TABLE -> answer(exchange, 200, bytes("{\"metadata\": {}}"));
      case NEWER_FORMAT ->
          answer(
              exchange,
              200,
              bytes(body.replaceAll("\"format-version\" ?: ?\\d", "\"format-version\":99")));
      case OTHER_TABLE ->
          answer(
              exchange,
              200,
              bytes(
                  body.replaceAll("\"table-uuid\" ?: ?\"[^\"]{8}", "\"table-uuid\":\"00000000")
                      .replaceAll(
                          "\"metadata-location\" ?: ?\"", "\"metadata-location\":\"/other")));
      case TWICE -> answer(exchange, answer.statusCode(), answer.body());
      case STALE ->
          answer(
              exchange,
              answer.statusCode(),
              lastGood.getOrDefault(exchange.getRequestURI().getPath(), answer.body()));
      case BAD_GATEWAY -> answer(exchange, 502, bytes("<html>Bad Gateway</html>"));
      case CONFLICT -> {
        String type =
            "{\"error\":{\"message\":\"it has changed\",\"type\":\"CommitFailedException\",";
        answer(exchange, 409, bytes(type + "\"code\":409}}"));
      }
      default -> throw new IllegalStateException(fault.name());
    }
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
    exchange.getResponseHeaders().add("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
    if (body.length > 0) {
      try (OutputStream out = exchange.getResponseBody()) {
        out.write(body);
      }
    }
  }

  @Override
  public void close() {
    proxy.stop(0);
    threads.shutdownNow();
  }
}
