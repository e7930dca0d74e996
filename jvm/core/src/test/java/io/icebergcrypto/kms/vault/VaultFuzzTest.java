package io.icebergcrypto.kms.vault;

import static io.icebergcrypto.kms.http.FuzzedAnswers.answer;
import static io.icebergcrypto.kms.http.FuzzedAnswers.hinted;
import static io.icebergcrypto.kms.http.FuzzedAnswers.parsed;
import static io.icebergcrypto.kms.http.FuzzedAnswers.status;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.kms.VaultKmsClient;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.testing.Fuzz;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Hostile answers in Vault's name. */
class VaultFuzzTest {
  @TempDir private Path folder;

  @Test
  void refusals() {
    String[] valid = {
      "{\"errors\": [\"1 error occurred:\\n"
          + "\\t* encryption key not found\\n"
          + "\\n"
          + "\", \"invalid token\"]}",
      "{\"errors\": [\"ciphertext or signature version is disallowed by policy (too old)\"]}",
      "{\"data\": {\"ttl\": 3600, \"renewable\": true, \"ciphertext\": \"vault:v1:abc\"}}"
    };
    VaultErrors errors =
        new VaultErrors(
            VaultConfig.of(
                Map.of(VaultConfig.ADDRESS, "https://vault:8200", VaultConfig.TOKEN_ENV, "T")));
    Fuzz.run(
        1,
        round -> {
          JsonHttp.Answer answer = answer(round, valid);
          assertThat(VaultHttp.told(answer)).hasSizeLessThan(400).doesNotContain("\n");
          VaultErrors.isInvalidToken(answer);
          JsonObject data = JsonHttp.object(answer.body(), "data");
          JsonHttp.number(data, "ttl");
          JsonHttp.isTrue(data, "renewable");
          JsonHttp.text(data, "ciphertext");
          hinted(errors.denied(true, answer, VaultKeys.DECRYPT, "k1"));
          hinted(errors.denied(false, answer, VaultKeys.DECRYPT, "k1"));
          hinted(errors.of(answer, VaultKeys.ENCRYPT, "k1"));
          return parsed(answer, errors.of(answer, VaultKeys.DECRYPT, "k1"));
        });
  }

  @Test
  void overHttp() throws IOException {
    Path token = folder.resolve("token");
    Files.writeString(token, "t");
    Files.setPosixFilePermissions(token, PosixFilePermissions.fromString("rw-------"));
    AtomicReference<Fuzz> round = new AtomicReference<>();
    String[] valid = {
      "{\"data\": {\"plaintext\": \"MDEyMzQ1Njc4OWFiY2RlZg==\", \"ttl\": 60, \"renewable\": true}}",
      "{\"auth\": {\"client_token\": \"t\", \"lease_duration\": 60}, \"errors\": [\"invalid"
          + " token\"]}"
    };
    HttpServer server =
        HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.createContext(
        "/",
        exchange -> {
          exchange.getRequestBody().readAllBytes();
          Fuzz now = round.get();
          byte[] body = now.mutated(now.oneOf(valid)).getBytes(UTF_8);
          int status = now.random().nextInt(3) > 0 ? 200 : status(now);
          if (now.random().nextInt(20) == 0) {
            exchange.getResponseHeaders().add("Location", "https://127.0.0.1:1/%zz");
            status = 307;
          }

          exchange.sendResponseHeaders(status, status == 204 ? -1 : body.length + 1);
          exchange.getResponseBody().write(body);
          exchange.getResponseBody().write('\n');
          exchange.close();
        });
    server.start();
    String address = "http://127.0.0.1:" + server.getAddress().getPort();
    byte[] bare = "vault:v1:YWJj".getBytes(UTF_8);
    byte[] headed = new WrappedKey("vault", 1, bare).encode().array();
    try {
      Fuzz.run(
          50,
          next -> {
            round.set(next);
            try (VaultKmsClient client = new VaultKmsClient()) {
              client.initialize(
                  Map.of(
                      VaultConfig.ADDRESS,
                      address,
                      VaultConfig.TOKEN_FILE,
                      token.toString(),
                      VaultConfig.READ_BARE,
                      "true"));
              byte[] blob = next.oneOf(headed, bare, next.mutated(bare));
              return client.unwrapKey(ByteBuffer.wrap(blob), "k1").hasRemaining();
            }
          });
    } finally {
      server.stop(0);
    }
  }
}
