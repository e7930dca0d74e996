package io.icebergcrypto.kms.hadoop;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.kms.call.Causes;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Against a server that answers as a KMS does. */
class HadoopKeysTest {
  private static final String MATERIAL = Base64.getEncoder().encodeToString(new byte[16]);
  private static final String MADE =
      String.format(
          "{\"versionName\": \"k@%%d\", \"iv\": \"%s\", \"encryptedKeyVersion\": {\"material\":"
              + " \"%s\"}}",
          MATERIAL, MATERIAL);
  private static final String OPENED = String.format("{\"material\": \"%s\"}", MATERIAL);

  private HttpServer server;
  private HadoopKeys keys;
  private volatile int newest;
  private volatile String refusesToGenerate = "";
  private volatile String missing = "none";

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext(
        "/kms/v1/key/",
        exchange -> answer(exchange, refusesToGenerate, "[" + String.format(MADE, newest) + "]"));
    server.createContext(
        "/kms/v1/keyversion/",
        exchange -> {
          boolean has = !exchange.getRequestURI().getPath().contains(missing);
          answer(exchange, has ? "" : "'" + missing + "' not found", OPENED);
        });
    server.start();
    String uri = "kms://http@localhost:" + server.getAddress().getPort() + "/kms";
    keys =
        new HadoopKeys(
            HadoopConfig.of(
                Map.of(HadoopConfig.URI_PROPERTY, uri, "encryption.kms.hadoop.user", "etl")));
  }

  @AfterEach
  void stop() {
    server.stop(0);
  }

  private static void answer(HttpExchange exchange, String refusal, String result)
      throws IOException {
    String exception =
        refusal.contains("not allowed") ? "AuthorizationException" : "IllegalArgumentException";
    String refused =
        String.format(
            "{\"RemoteException\": {\"exception\": \"%s\", \"message\": \"%s\"}}",
            exception, refusal);
    byte[] body = (refusal.isEmpty() ? result : refused).getBytes(UTF_8);
    exchange.getResponseHeaders().add("Content-Type", "application/json");
    exchange.sendResponseHeaders(refusal.isEmpty() ? 200 : 500, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }

  @Test
  void wrapsAndUnwraps() {
    ByteBuffer blob = keys.wrap(new byte[16], "k");
    assertThat(keys.unwrap(blob, "k")).isEqualTo(ByteBuffer.allocate(16));
  }

  /** On decrypt the KMS speaks of a version only, also where the whole key is gone. */
  @ParameterizedTest
  @CsvSource({
    "1, '', false",
    "0, '', true", // it generated that data key before the key was deleted
    "1, No KeyVersion exists for key 'k', true",
    "1, User:etl not allowed to do 'GENERATE_EEK' on 'k', false",
    "1, out of order, false",
  })
  void aMissingVersionIsNoMissingKey(int generates, String toGenerate, boolean gone) {
    ByteBuffer blob = keys.wrap(new byte[16], "k");
    refusesToGenerate = toGenerate;
    newest = generates;
    missing = "k@0";
    assertThatThrownBy(() -> keys.unwrap(blob, "k"))
        .hasMessageContainingAll("'k'", "'k@0' not found")
        .isInstanceOfSatisfying(
            KeyNotFoundException.class, e -> assertThat(Causes.isOfKey(e)).isEqualTo(gone));
  }
}
