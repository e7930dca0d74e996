package io.icebergcrypto.kms.azure;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AzureErrorsTest {
  private static final AzureConfig AZURE =
      AzureConfig.read(Map.of(AzureConfig.VAULT_URL, "https://name.vault.azure.net"));

  @ParameterizedTest
  @CsvSource({
    "Forbidden, ForbiddenByPolicy, true",
    "Forbidden, ForbiddenByRbac, true",
    "Forbidden, AccessDenied, true",
    "AccessDenied, '', true", // of a Managed HSM
    "Forbidden, ForbiddenByFirewall, false",
    "Forbidden, ForbiddenByConnection, false",
    "Forbidden, ForbiddenByNsp, false",
    "Forbidden, ForbiddenBySomethingNew, false",
    "Forbidden, '', false",
  })
  void onlyAMissingPermissionIsOfTheKey(String code, String inner, boolean ofKey) {
    String body =
        String.format(
            "{\"error\": {\"code\": \"%s\", \"message\": \"no\", \"innererror\": {\"code\":"
                + " \"%s\"}}}",
            code, inner);
    IcebergCryptoException error = error(403, body);
    assertThat(error).isExactlyInstanceOf(AccessDeniedException.class);
    assertThat(Causes.isOfKey(error)).isEqualTo(ofKey);
    assertThat(Causes.isOfKey(error.inTable("t").withHint("x").withProblem("y"))).isEqualTo(ofKey);
  }

  @Test
  void aKeyThatIsBeingRecoveredIsNotGone() {
    assertThat(
            error(
                409,
                "{\"error\": {\"code\": \"Conflict\", \"message\": \"Key is currently being"
                    + " recovered.\", \"innererror\": {\"code\": \"ObjectIsBeingRecovered\"}}}"))
        .isExactlyInstanceOf(KmsUnavailableException.class)
        .hasMessageContaining("is deleting or recovering key 'k'");
  }

  private static IcebergCryptoException error(int status, String body) {
    return new AzureErrors(AZURE, AzureKeyId.of("k", AZURE), "unwrapkey")
        .of(new JsonHttp.Answer(status, JsonHttp.object(body), ""));
  }
}
