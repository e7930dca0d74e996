package io.icebergcrypto.kms.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.call.TimeLimit;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProxySelector;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpConnectTimeoutException;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class JsonHttpTest {
  private static final String SECRET = "token-only-for-tests";

  private final AtomicInteger requests = new AtomicInteger();
  private final AtomicLong sent = new AtomicLong();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private volatile int status = 200;
  private volatile long size;
  private HttpServer server;

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
    server.setExecutor(threads);
    server.createContext(
        "/",
        exchange -> {
          requests.incrementAndGet();
          exchange.getResponseHeaders().add("Location", "/elsewhere");
          exchange.sendResponseHeaders(status, 0); // of a length that is not told
          byte[] part = new byte[1 << 16];
          Arrays.fill(part, (byte) ' ');
          try (OutputStream body = exchange.getResponseBody()) {
            body.write("{\"a\": \"b\"}".getBytes());
            for (long left = size - 10; left > 0; left -= part.length) {
              body.write(part, 0, (int) Math.min(left, part.length));
              sent.addAndGet(part.length);
            }
          }
        });
    server.start();
  }

  @AfterEach
  void stop() {
    server.stop(0);
    threads.shutdownNow();
  }

  private JsonHttp.Answer ask(Map<String, String> headers) {
    URI uri = URI.create("http://127.0.0.1:" + server.getAddress().getPort() + "/x");
    return new JsonHttp("the KMS", new TimeLimit(20_000), null).ask(uri, headers, new JsonObject());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"%s\n", "%s\r\nX-More: yes", "\t%s", "%s\u0000", "%s\u00e9", " %s", "%s "})
  void aValueThatNoHeaderMayHaveIsRefusedAndNotShown(String value) {
    assertThatThrownBy(() -> ask(Map.of("Authorization", String.format(value, SECRET))))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("the KMS: the value for the header Authorization ", "hint: ")
        .hasMessageNotContaining(SECRET)
        .hasNoCause();
    assertThat(requests).hasValue(0);
  }

  @Test
  void anEmptyValueIsRefused() {
    assertThatThrownBy(() -> ask(Map.of("X-Vault-Token", "")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("X-Vault-Token is empty");
  }

  @Test
  void aBodyOfTheLimitIsRead() {
    size = LimitedBody.MOST_BYTES;
    JsonHttp.Answer answer = ask(Map.of("Authorization", "Bearer " + SECRET));
    assertThat(answer.status()).isEqualTo(200);
    assertThat(JsonHttp.text(answer.body(), "a")).isEqualTo("b");
  }

  @ParameterizedTest
  @CsvSource({"200,false", "404,false", "429,true", "503,true"})
  void aBodyWithoutEndIsGivenUp(int answered, boolean isTransient) {
    status = answered;
    size = 1L << 40;
    assertThatThrownBy(() -> ask(Map.of()))
        .isInstanceOf(
            isTransient ? KmsUnavailableException.class : InvalidConfigurationException.class)
        .isInstanceOf(IcebergCryptoException.class)
        .hasMessageContaining(
            "the KMS answers HTTP "
                + answered
                + " with more than 1048576 bytes, which no KMS sends")
        .hasMessageContaining("hint: ");
    assertThat(sent.get()).isLessThan(64L << 20); // what the sockets hold, and no more
  }

  /** A firewall forgets connections: what is sent on them arrives nowhere. */
  @Test
  void aConnectionThatWasDroppedIsUsedOnce() throws IOException {
    try (DroppingServer dropping = new DroppingServer()) {
      JsonHttp http = new JsonHttp("the KMS", new TimeLimit(600), null);
      assertThat(http.ask(dropping.uri(), Map.of(), null).status()).isEqualTo(200);
      dropping.drop();
      assertThatThrownBy(() -> http.ask(dropping.uri(), Map.of(), null))
          .isInstanceOf(KmsUnavailableException.class);
      assertThat(http.ask(dropping.uri(), Map.of(), null).status()).isEqualTo(200);
      assertThat(dropping.connections()).isEqualTo(2);
    }
  }

  @Test
  void aConnectionThatWasIdleForLongIsNotUsed() throws IOException {
    AtomicLong clock = new AtomicLong();
    try (DroppingServer dropping = new DroppingServer()) {
      JsonHttp http = new JsonHttp("the KMS", new TimeLimit(2_000), null, null, clock::get);
      for (long seconds : new long[] {0, 29, 58}) {
        clock.set(TimeUnit.SECONDS.toNanos(seconds));
        http.ask(dropping.uri(), Map.of(), null);
      }

      assertThat(dropping.connections()).isOne();
      dropping.drop();
      clock.set(TimeUnit.SECONDS.toNanos(89));
      assertThat(http.ask(dropping.uri(), Map.of(), null).status()).isEqualTo(200);
      assertThat(dropping.connections()).isEqualTo(2);
    }
  }

  /** Answers, and keeps connections; those that were there are then dropped without a word. */
  private final class DroppingServer implements AutoCloseable {
    private static final String OK =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

    private final ServerSocket socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final Queue<Socket> open = new ConcurrentLinkedQueue<>();
    private final Set<Socket> dropped = ConcurrentHashMap.newKeySet();

    DroppingServer() throws IOException {
      threads.submit(
          () -> {
            while (true) {
              Socket next = socket.accept();
              open.add(next);
              threads.submit(() -> answer(next));
            }
          });
    }

    URI uri() {
      return URI.create("http://127.0.0.1:" + socket.getLocalPort() + "/x");
    }

    void drop() {
      dropped.addAll(open);
    }

    int connections() {
      return open.size();
    }

    private Void answer(Socket connection) throws IOException {
      BufferedReader in =
          new BufferedReader(
              new InputStreamReader(connection.getInputStream(), StandardCharsets.US_ASCII));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        if (line.isEmpty() && !dropped.contains(connection)) {
          connection.getOutputStream().write(OK.getBytes(StandardCharsets.US_ASCII));
        }
      }

      return null;
    }

    @Override
    public void close() throws IOException {
      socket.close();
      for (Socket connection : open) {
        connection.close();
      }
    }
  }

  /** For https, Java has no body of such an answer. */
  @ParameterizedTest
  @ValueSource(strings = {"http", "https"})
  void aProxyThatAsksForALoginIsNamed(String scheme) throws IOException {
    ProxySelector usual = ProxySelector.getDefault();
    try (ServerSocket proxy = new ServerSocket(0, 50, InetAddress.getLoopbackAddress())) {
      threads.submit(
          () -> {
            while (true) {
              try (Socket client = proxy.accept()) {
                client
                    .getOutputStream()
                    .write(
                        ("HTTP/1.1 407 Proxy Authentication Required\r\n"
                                + "Proxy-Authenticate: Basic realm=\"out\"\r\n"
                                + "Content-Length: 0\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
                client.getInputStream().read();
              }
            }
          });
      ProxySelector.setDefault(
          ProxySelector.of(new InetSocketAddress("127.0.0.1", proxy.getLocalPort())));
      JsonHttp http = new JsonHttp("the KMS", new TimeLimit(5_000), null);
      assertThatThrownBy(() -> http.ask(URI.create(scheme + "://kms.example/x"), Map.of(), null))
          .isInstanceOf(InvalidConfigurationException.class)
          .hasMessageContainingAll("the KMS is behind a proxy", "407", "http.nonProxyHosts");
    } finally {
      ProxySelector.setDefault(usual);
    }
  }

  @Test
  void aConnectionThatIsNotMadeIsToldBeforeTheCallsTimeIsOver() throws IOException {
    List<SocketChannel> waiting = new ArrayList<>();
    try (ServerSocket full = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      for (int i = 0; i < 8; i++) { // what is more than the backlog gets no answer
        SocketChannel channel = SocketChannel.open();
        waiting.add(channel);
        channel.configureBlocking(false);
        channel.connect(full.getLocalSocketAddress());
      }
      URI uri = URI.create("http://127.0.0.1:" + full.getLocalPort() + "/x");
      JsonHttp http = new JsonHttp("the KMS", new TimeLimit(1_500), null);
      assertThatThrownBy(() -> http.ask(uri, Map.of(), null))
          .isInstanceOf(KmsUnavailableException.class)
          .hasMessageContaining("the KMS cannot be reached: no connection within 500 ms")
          .hasCauseInstanceOf(HttpConnectTimeoutException.class);
    } finally {
      for (SocketChannel channel : waiting) {
        channel.close();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {301, 302, 303, 307, 308})
  void noRedirectIsFollowed(int redirect) {
    status = redirect;
    assertThat(ask(Map.of()).status()).isEqualTo(redirect);
    assertThat(requests).hasValue(1);
  }

  @Test
  void anErrorThatQuotesAHeaderIsKnown() throws IOException {
    URI uri = URI.create("http://127.0.0.1:1/");
    String value = SECRET + "\n";
    assertThatThrownBy(() -> java.net.http.HttpRequest.newBuilder(uri).header("A", value))
        .hasMessageContaining(SECRET)
        .matches(HeaderValues::areQuotedBy);
    java.net.URLConnection connection = uri.toURL().openConnection();
    assertThatThrownBy(() -> connection.addRequestProperty("A", value))
        .hasMessageContaining(SECRET)
        .matches(HeaderValues::areQuotedBy)
        .matches(error -> HeaderValues.areQuotedBy(new IOException("x", error)));
    assertThat(HeaderValues.areQuotedBy(new IOException("reset"))).isFalse();
  }
}
