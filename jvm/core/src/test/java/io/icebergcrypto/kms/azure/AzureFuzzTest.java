package io.icebergcrypto.kms.azure;

import static io.icebergcrypto.kms.http.FuzzedAnswers.answer;
import static io.icebergcrypto.kms.http.FuzzedAnswers.hinted;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import io.icebergcrypto.kms.http.JsonHttp;
import io.icebergcrypto.testing.Fuzz;
import java.net.URI;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Hostile key ids, and answers in a vault's name. */
class AzureFuzzTest {
  private static final AzureConfig AZURE =
      AzureConfig.read(Map.of(AzureConfig.VAULT_URL, "https://name.vault.azure.net"));

  @Test
  void keyIds() {
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
  void answers() {
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
}
