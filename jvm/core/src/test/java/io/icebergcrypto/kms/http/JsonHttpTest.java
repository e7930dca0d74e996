package io.icebergcrypto.kms.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.call.TimeLimit;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpConnectTimeoutException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
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
    threads.shutdown();
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
        .hasMessageContaining("the KMS: the value for the header Authorization ")
        .hasMessageContaining("hint: ")
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
            "the KMS answers HTTP " + answered + " with more than 1048576 bytes, which no KMS does")
        .hasMessageContaining("hint: ");
    assertThat(sent.get()).isLessThan(64L << 20); // what the sockets hold, and no more
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
