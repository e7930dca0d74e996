package io.icebergcrypto.kms.gcp;

import static io.icebergcrypto.kms.http.FuzzedAnswers.parsed;
import static io.icebergcrypto.kms.http.FuzzedAnswers.status;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.testing.Fuzz;
import java.net.URI;
import java.util.Map;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.Test;

/** Hostile key ids, and answers in Google's name. */
class GcpFuzzTest {
  private static final GcpConfig CONFIG =
      GcpConfig.read(Map.of(GcpConfig.ENDPOINT, "http://localhost:1", GcpConfig.AAD, "key-id"));

  @Test
  void keyNames() {
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
  void answers() {
    String[] valid = {
      "{\"error\": {\"status\": \"PERMISSION_DENIED\", \"message\": \"no\", \"details\":"
          + " [{\"reason\": \"SERVICE_DISABLED\"}]}}",
      "{\"error\": {\"status\": \"INVALID_ARGUMENT\", \"message\": \"purpose\"}}",
      "{\"error\": \"invalid_grant\", \"error_description\": \"iat and exp\"}"
    };
    Fuzz.run(
        1,
        round -> {
          String body = round.mutated(round.oneOf(valid));
          GcpErrors.oauth(body);
          JsonHttp.Answer answer = new JsonHttp.Answer(status(round), JsonHttp.object(body), "");
          return parsed(answer, new GcpErrors(CONFIG, "k1").of("decrypt", answer));
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
          assertThat(GcpKeys.bytes(CONFIG, body, "plaintext", "k1")).isEqualTo(bytes);
          return true;
        });
  }
}
