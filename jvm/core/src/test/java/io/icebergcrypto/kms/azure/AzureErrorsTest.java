package io.icebergcrypto.kms.azure;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class AzureErrorsTest {
  private static final AzureConfig AZURE =
      AzureConfig.read(Map.of(AzureConfig.VAULT_URL, "https://name.vault.azure.net"));

  @ParameterizedTest
  @CsvSource({
    "ForbiddenByPolicy, true",
    "ForbiddenByRbac, true",
    "AccessDenied, true",
    "ForbiddenByFirewall, false",
    "ForbiddenByConnection, false",
    "ForbiddenByNsp, false",
    "ForbiddenBySomethingNew, false",
    "'', false",
  })
  void onlyAMissingPermissionIsOfTheKey(String inner, boolean ofKey) {
    String body =
        "{\"error\": {\"code\": \"Forbidden\", \"message\": \"no\", \"innererror\": {\"code\":"
            + " \"%s\"}}}";
    IcebergCryptoException error =
        new AzureErrors(AZURE, AzureKeyId.of("k", AZURE), "unwrapkey")
            .of(new JsonHttp.Answer(403, JsonHttp.object(String.format(body, inner)), Map.of()));
    assertThat(error).isExactlyInstanceOf(AccessDeniedException.class);
    assertThat(Causes.isOfKey(error)).isEqualTo(ofKey);
    assertThat(Causes.isOfKey(error.inTable("t").withHint("x").withProblem("y"))).isEqualTo(ofKey);
  }
}
