package io.icebergcrypto.kms.vault;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.ToLongFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a slow Vault is asked before the first wrap. */
class VaultSetUpTest {
  @TempDir private Path folder;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<String> requests = Collections.synchronizedList(new ArrayList<>());
  private volatile ToLongFunction<String> delayMs = request -> 0;
  private HttpServer server;

  @BeforeEach
  void start() throws IOException {
    this.server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(threads);
    server.createContext("/", this::answer);
    server.start();
  }

  @AfterEach
  void stop() {
    server.stop(0);
    threads.shutdownNow();
  }

  private void answer(HttpExchange exchange) throws IOException {
    String body = new String(exchange.getRequestBody().readAllBytes(), UTF_8);
    String path = exchange.getRequestURI().getPath();
    String request = path.replaceFirst(".*/(\\w[\\w-]*)/k1", "$1").replaceFirst(".*/", "");
    int status = 200;
    String answer = "{\"data\": {\"ttl\": 0}}";
    if (request.equals("encrypt")) {
      answer = "{\"data\": {\"ciphertext\": \"vault:v1:AAAA\"}}";
    } else if (request.equals("decrypt")) { // a probe, or another key id
      request = body.contains("probe") ? "transit" : "binding";
      status = 400;
      answer = "{\"errors\": [\"invalid ciphertext\"]}";
    }

    requests.add(request);
    try {
      Thread.sleep(delayMs.applyAsLong(request));
    } catch (InterruptedException e) {
      return;
    }

    exchange.sendResponseHeaders(status, answer.length());
    exchange.getResponseBody().write(answer.getBytes(UTF_8));
    exchange.close();
  }

  private CachingKmsClient client(Map<String, String> more) throws IOException {
    Path token = folder.resolve("token");
    Files.writeString(token, "t");
    Files.setPosixFilePermissions(token, PosixFilePermissions.fromString("rw-------"));
    Map<String, String> properties = new HashMap<>(more);
    properties.put("encryption.kms-type", "vault");
    properties.put(VaultConfig.ADDRESS, "http://127.0.0.1:" + server.getAddress().getPort());
    properties.put("encryption.kms.vault.token-file", token.toString());
    properties.put("encryption.kms.vault.allow-http", "true");
    return KmsClients.create(properties);
  }

  @Test
  void eachRequestHasTheTimeLimit() throws IOException {
    delayMs = request -> 400;
    try (CachingKmsClient slow = client(Map.of("encryption.kms.call-timeout-ms", "1000"))) {
      slow.wrapKey(ByteBuffer.allocate(16), "k1");
      slow.wrapKey(ByteBuffer.allocate(16), "k1");
    }

    assertThat(requests).containsExactly("lookup-self", "transit", "encrypt", "binding", "encrypt");
  }

  @Test
  void whatWasSeenIsNotAskedAgain() throws IOException {
    delayMs = request -> request.equals("binding") ? 1000 : 0;
    Map<String, String> impatient =
        Map.of(
            "encryption.kms.call-timeout-ms",
            "300",
            "encryption.kms.retry.max-attempts",
            "2",
            "encryption.kms.retry.initial-delay-ms",
            "1");
    try (CachingKmsClient client = client(impatient)) {
      assertThatThrownBy(() -> client.wrapKey(ByteBuffer.allocate(16), "k1"))
          .isInstanceOf(KmsUnavailableException.class)
          .hasMessageContaining("did not answer within 300 ms");
    }

    assertThat(requests)
        .containsExactly("lookup-self", "transit", "encrypt", "binding", "encrypt", "binding");
  }
}
