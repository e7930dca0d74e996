package io.icebergcrypto.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.testing.Backend;
import io.icebergcrypto.testing.LakeFixture;
import io.icebergcrypto.testing.MotoServer;
import io.icebergcrypto.testing.TestLake;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.iceberg.Table;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Encrypted tables on S3 where a server signs each request, and the client has no login there. */
@ParameterizedClass
@EnumSource(names = "JDBC")
class RemoteSigningTest extends LakeFixture {
  private static final String BUCKET = "remote-signing";
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Method and path of what was signed. */
  private final Set<String> signed = new ConcurrentSkipListSet<>();

  private volatile int status = 200;

  @Override
  protected Set<Backend> byDay() {
    return Set.of();
  }

  @Test
  void eachRequestIsSigned() throws Exception {
    String s3 = MotoServer.uri();
    ask(
        HttpRequest.newBuilder(URI.create(s3 + "/" + BUCKET))
            .PUT(HttpRequest.BodyPublishers.noBody()));
    HttpServer signer =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    signer.createContext("/sign", this::sign);
    signer.start();
    Map<String, String> properties =
        Map.of(
            "warehouse", "s3://" + BUCKET + "/warehouse",
            "io-impl", "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint", s3,
            "s3.path-style-access", "true",
            "client.region", "eu-west-1",
            "s3.remote-signing-enabled", "true",
            "signer.uri", "http://127.0.0.1:" + signer.getAddress().getPort(),
            "signer.endpoint", "sign");
    try (EncryptedCatalog onS3 = lake.open(properties)) {
      Table table = TestLake.append(TestLake.createTable(onS3, "t", Map.of()), 1, 2);
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L);

      for (String location : TestLake.locations(table)) {
        String path = URI.create(location).getPath();
        assertThat(signed).contains("PUT " + path);
        byte[] stored = ask(HttpRequest.newBuilder(URI.create(s3 + "/" + BUCKET + path)));
        assertThat(new String(stored, 0, 4, StandardCharsets.ISO_8859_1)).isIn("PARE", "AGS1");
      }
      assertThat(signed).anyMatch(request -> request.matches("GET .*[.]parquet"));

      status = 403;
      assertThatThrownBy(() -> TestLake.append(table, 3)).hasMessageContaining("not for you");
      status = 200;
      table.refresh();
      assertThat(TestLake.ids(table)).containsExactly(1L, 2L);
    } finally {
      signer.stop(0);
    }
  }

  /** moto refuses objects to those without a signature, and checks none. */
  private static byte[] ask(HttpRequest.Builder request) throws Exception {
    request.header("Authorization", "signed here");
    HttpResponse<byte[]> answer =
        HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    assertThat(answer.statusCode()).isEqualTo(200);
    return answer.body();
  }

  /** Signs as Iceberg's REST specification has it (S3SignRequest). */
  private void sign(HttpExchange exchange) throws IOException {
    JsonNode request = JSON.readTree(exchange.getRequestBody());
    URI uri = URI.create(request.get("uri").asText());
    signed.add(request.get("method").asText() + " " + uri.getPath().substring(BUCKET.length() + 1));
    Map<String, Object> answer =
        status == 200
            ? Map.of(
                "uri", uri.toString(), "headers", Map.of("Authorization", List.of("signed here")))
            : Map.of(
                "error",
                Map.of("message", "not for you", "type", "ForbiddenException", "code", status));
    byte[] body = JSON.writeValueAsBytes(answer);
    exchange.getResponseHeaders().set("Content-Type", "application/json");
    exchange.sendResponseHeaders(status, body.length);
    exchange.getResponseBody().write(body);
    exchange.close();
  }
}
