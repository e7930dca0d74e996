package io.icebergcrypto.kms.vault;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class VaultErrorsTest {
  private static final VaultErrors ERRORS =
      new VaultErrors(
          VaultConfig.of(
              Map.of(VaultConfig.ADDRESS, "https://vault:8200", VaultConfig.TOKEN_ENV, "T")));

  /** A Vault that lags behind a rotation has lost no key, and nobody has changed one. */
  @Test
  void aVersionThatIsNotThereYetIsAskedForAgain() {
    JsonObject body = new JsonObject();
    JsonArray said = new JsonArray();
    said.add("invalid ciphertext: version is too new");
    body.add("errors", said);
    JsonHttp.Answer answer = new JsonHttp.Answer(400, body, "");
    assertThat(ERRORS.of(answer, VaultKeys.DECRYPT, "k"))
        .isInstanceOf(KmsUnavailableException.class)
        .hasMessageContainingAll("version of key 'k'", "not yet", "active cluster", "snapshot");
  }

  /** An expired token, or one of another network, may not look itself up either. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void onlyATokenThatLivesIsRefusedTheKey(boolean lives) {
    JsonHttp.Answer answer = new JsonHttp.Answer(403, new JsonObject(), "");
    assertThat(Causes.isOfKey(ERRORS.denied(lives, answer, VaultKeys.DECRYPT, "k")))
        .isEqualTo(lives);
  }
}
