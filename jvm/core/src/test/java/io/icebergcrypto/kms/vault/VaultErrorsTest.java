package io.icebergcrypto.kms.vault;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class VaultErrorsTest {
  /** An expired token, or one of another network, may not look itself up either. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void onlyATokenThatLivesIsRefusedTheKey(boolean lives) {
    VaultErrors errors =
        new VaultErrors(
            VaultConfig.of(
                Map.of(VaultConfig.ADDRESS, "https://vault:8200", VaultConfig.TOKEN_ENV, "T")));
    JsonHttp.Answer answer = new JsonHttp.Answer(403, new JsonObject(), Map.of());
    assertThat(Causes.isOfKey(errors.denied(lives, answer, VaultKeys.DECRYPT, "k")))
        .isEqualTo(lives);
  }
}
