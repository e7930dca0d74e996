package io.icebergcrypto.kms;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.sun.net.httpserver.HttpServer;
import io.icebergcrypto.BadWrappedKeyException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.azure.AzureConfig;
import io.icebergcrypto.kms.azure.AzureErrors;
import io.icebergcrypto.kms.azure.AzureKeyId;
import io.icebergcrypto.kms.azure.AzureVault;
import io.icebergcrypto.kms.blob.KeyVersions;
import io.icebergcrypto.kms.blob.WrappedKey;
import io.icebergcrypto.kms.config.SecretSource;
import io.icebergcrypto.kms.gcp.GcpErrors;
import io.icebergcrypto.kms.gcp.GcpKeyName;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.kms.keystore.KeystoreFile;
import io.icebergcrypto.kms.vault.VaultConfig;
import io.icebergcrypto.kms.vault.VaultErrors;
import io.icebergcrypto.kms.vault.VaultHttp;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Hostile wrapped keys, key ids, keystores, and answers in the name of a KMS. */
class KmsFuzzTest {
  private static final int[] STATUS = {200, 204, 301, 400, 401, 403, 404, 405, 409, 429, 500, 503};

  private static final AzureConfig AZURE =
      AzureConfig.of(Map.of(AzureConfig.VAULT_URL, "https://name.vault.azure.net"));

  @TempDir private Path folder;

  @Test
  void wrappedKeys() {
    byte[] valid = new WrappedKey("vault", 3, "vault:v3:abc".getBytes(UTF_8)).encode().array();
    Fuzz.run(
        1,
        round -> {
          ByteBuffer blob = ByteBuffer.wrap(round.mutated(valid)).asReadOnlyBuffer();
          try {
            WrappedKey.refuseHeader(blob, "aws", "k1");
          } catch (IcebergCryptoException e) {
            assertThat(e.problem()).contains("'k1'");
          }

          WrappedKey key = WrappedKey.parse(blob, "vault", "k1");
          assertThat(key.encode()).isEqualTo(blob); // no two blobs are one key
          return true;
        });
  }

  @Test
  void keystoreBlobs() throws IOException {
    KeystoreKmsClient client = new KeystoreKmsClient();
    client.initialize(TestKeystore.create(folder, "k1", "k1.v3").properties());
    byte[] key = "0123456789abcdef".getBytes(UTF_8);
    byte[] valid = client.wrapKey(ByteBuffer.wrap(key), "k1").array();
    Fuzz.run(
        4,
        round -> {
          byte[] blob = round.mutated(valid);
          assertThat(client.unwrapKey(ByteBuffer.wrap(blob), "k1")).isEqualTo(ByteBuffer.wrap(key));
          assertThat(blob).isEqualTo(valid);
          return true;
        });
  }

  @Test
  void keystoreFiles() throws IOException {
    TestKeystore keystore = TestKeystore.create(folder, "k1");
    SecretSource password = SecretSource.file(folder.resolve("password").toString(), "p");
    byte[] valid = Files.readAllBytes(keystore.path());
    Path copy = folder.resolve("copy.p12");
    Fuzz.run(
        100,
        round -> {
          Files.write(copy, round.mutated(valid));
          Files.setPosixFilePermissions(copy, PosixFilePermissions.fromString("rw-------"));
          return KeystoreFile.read(copy, password).has("k1", 1);
        });
  }

  @Test
  void namesOfVersions() {
    Fuzz.run(
        1,
        round -> {
          String name = "k" + round.mutated("key.v2.v17");
          if (!KeyVersions.isKeyId(name)) {
            KeyVersions.requireKeyId(name, "keystore");
          }

          int version = 1 + round.random().nextInt(1_000_000);
          String entry = KeyVersions.entry(name, version);
          assertThat(KeyVersions.newest(name, List.of(round.mutated(name), name, entry)))
              .isGreaterThanOrEqualTo(version);
          return true;
        });
  }

  @Test
  void azureKeyIds() {
    String[] valid = {"key-1", "key-1/0123456789abcdef", AZURE.vault() + "/keys/key-1/0123abcd"};
    Fuzz.run(
        1,
        round -> {
          AzureKeyId id = AzureKeyId.of(round.mutated(round.oneOf(valid)), AZURE);
          // both go into the path of a request
          assertThat(id.name() + id.version()).matches("[0-9a-zA-Z-]+");
          return true;
        });
  }

  @Test
  void gcpKeyNames() {
    String valid = "projects/p-1/locations/eu/keyRings/r/cryptoKeys/k_1/cryptoKeyVersions/7";
    Fuzz.run(
        1,
        round -> {
          GcpKeyName name = GcpKeyName.parse(round.mutated(valid));
          assertThat(URI.create("https://x/v1/" + name.asGiven() + ":encrypt").getPath())
              .isEqualTo("/v1/" + name.asGiven() + ":encrypt");
          return true;
        });
  }

  @Test
  void vaultsRefusals() {
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
            VaultConfig.read(
                Map.of(VaultConfig.ADDRESS, "https://vault:8200", VaultConfig.TOKEN_ENV, "T")));
    Fuzz.run(
        1,
        round -> {
          JsonHttp.Answer answer = answer(round, valid);
          assertThat(VaultHttp.told(answer)).hasSizeLessThan(400).doesNotContain("\n");
          VaultErrors.isInvalidToken(answer);
          JsonObject data = JsonHttp.object(answer.body(), "data");
          VaultHttp.number(data, "ttl");
          VaultHttp.isTrue(data, "renewable");
          VaultHttp.text(data, "ciphertext");
          hinted(errors.refused(answer, VaultKmsClient.DECRYPT, "k1"));
          hinted(errors.of(answer, VaultKmsClient.ENCRYPT, "k1"));
          return parsed(answer, errors.of(answer, VaultKmsClient.DECRYPT, "k1"));
        });
  }

  @Test
  void vaultOverHttp() throws IOException {
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
    ByteBuffer wrapped = new WrappedKey("vault", 1, "vault:v1:YWJj".getBytes(UTF_8)).encode();
    try {
      Fuzz.run(
          50,
          next -> {
            round.set(next);
            try (VaultKmsClient client = new VaultKmsClient()) {
              client.initialize(
                  Map.of(VaultConfig.ADDRESS, address, VaultConfig.TOKEN_FILE, token.toString()));
              return client.unwrapKey(wrapped, "k1").hasRemaining();
            }
          });
    } finally {
      server.stop(0);
    }
  }

  @Test
  void googlesAnswers() {
    String[] valid = {
      "{\"error\": {\"status\": \"PERMISSION_DENIED\", \"message\": \"no\", \"details\":"
          + " [{\"reason\": \"SERVICE_DISABLED\"}]}}",
      "{\"error\": {\"status\": \"INVALID_ARGUMENT\", \"message\": \"purpose\"}}",
      "{\"error\": \"invalid_grant\", \"error_description\": \"iat and exp\"}"
    };
    GcpErrors errors = new GcpErrors("Google Cloud KMS at x", "k1");
    Fuzz.run(
        1,
        round -> {
          String body = round.mutated(round.oneOf(valid));
          GcpErrors.oauth(body);
          JsonHttp.Answer answer =
              new JsonHttp.Answer(status(round), JsonHttp.object(body), Map.of());
          return parsed(answer, errors.of(answer, "decrypt", true));
        });
    String key = "{\"plaintext\": \"MDEyMzQ1Njc4OWFiY2RlZg==\", \"plaintextCrc32c\": \"%d\"}";
    byte[] bytes = "0123456789abcdef".getBytes(UTF_8);
    CRC32C checksum = new CRC32C();
    checksum.update(bytes);
    String answered = String.format(key, checksum.getValue());
    Fuzz.run(
        1,
        round -> {
          JsonObject body = JsonHttp.object(round.mutated(answered));
          assertThat(new GcpKmsClient().bytes(body, "plaintext", "k1")).isEqualTo(bytes);
          return true;
        });
  }

  @Test
  void azuresAnswers() {
    String version = AZURE.vault() + "/keys/key-1/0123456789abcdef";
    String[] valid = {
      "{\"error\": {\"code\": \"Forbidden\", \"message\": \"no\", \"innererror\": {\"code\":"
          + " \"KeyDisabled\"}}}",
      "{\"error\": {\"code\": \"BadParameter\", \"message\": \"alg\"}}",
      "{\"kid\": \"" + version + "\", \"value\": \"MDEyMzQ1\"}",
      "{\"value\": [{\"kid\": \""
          + version
          + "\", \"attributes\": {\"enabled\": true, \"created\": 1}}],"
          + " \"nextLink\": \""
          + version
          + "?api-version=7.4&$skiptoken=a\"}"
    };
    AzureKeyId id = AzureKeyId.of("key-1", AZURE);
    AzureErrors errors = new AzureErrors(AZURE, id, "unwrapkey", "MDEyMzQ1");
    Fuzz.run(
        1,
        round -> {
          JsonHttp.Answer answer = answer(round, valid);
          hinted(errors.of(answer));
          if (round.random().nextBoolean()) {
            AzureVault.Result result = AzureVault.result(answer.body(), errors);
            assertThat(result.version()).matches("[0-9a-zA-Z]+");
          } else {
            URI next = AzureVault.next(answer.body(), errors);
            assertThat(next == null || next.toString().startsWith(AZURE.vault() + "/")).isTrue();
            AzureVault.version(answer.body(), errors);
            if (answer.body().get("value") instanceof JsonArray found) {
              found.forEach(each -> AzureVault.version(each, errors));
            }
          }

          return true;
        });
  }

  private static JsonHttp.Answer answer(Fuzz round, String... valid) {
    return new JsonHttp.Answer(
        status(round), JsonHttp.object(round.mutated(round.oneOf(valid))), Map.of());
  }

  private static int status(Fuzz round) {
    return STATUS[round.random().nextInt(STATUS.length)];
  }

  private static void hinted(IcebergCryptoException error) {
    assertThat(error.hint()).isNotBlank();
    assertThat(error.problem()).contains("k");
  }

  /** A refusal is always one of ours; whether its words were understood is what counts here. */
  private static boolean parsed(JsonHttp.Answer answer, IcebergCryptoException error) {
    hinted(error);
    return answer.body().size() > 0 && !(error instanceof BadWrappedKeyException);
  }
}
