package io.icebergcrypto.kms.gcp;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyDisabledException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GcpErrorsTest {
  private static final GcpConfig CONFIG =
      GcpConfig.read(Map.of(GcpConfig.ENDPOINT, "http://localhost:1"));

  @ParameterizedTest
  @CsvSource({
    "IAM_PERMISSION_DENIED, no, true",
    "'', Permission 'cloudkms.cryptoKeyVersions.useToDecrypt' denied on resource 'k', true",
    "'', Request is prohibited by organization's policy, false",
    "SERVICE_DISABLED, no, false",
    "ACCESS_TOKEN_SCOPE_INSUFFICIENT, no, false",
    "USER_PROJECT_DENIED, no, false",
    "SECURITY_POLICY_VIOLATED, no, false",
    "SOMETHING_NEW, no, false",
  })
  void onlyAMissingPermissionIsOfTheKey(String reason, String message, boolean ofKey) {
    String body =
        "{\"error\": {\"status\": \"PERMISSION_DENIED\", \"message\": \"%s\", \"details\":"
            + " [{\"reason\": \"%s\"}]}}";
    IcebergCryptoException error = error(403, String.format(body, message, reason));
    assertThat(error).isExactlyInstanceOf(AccessDeniedException.class);
    assertThat(Causes.isOfKey(error)).isEqualTo(ofKey);
  }

  /** What an external key manager fails at is no state of the key. */
  @ParameterizedTest
  @CsvSource({
    "'k/cryptoKeyVersions/1 is not enabled, current state is: DISABLED.', true",
    "CryptoKey k has no primary version., true",
    "The external key manager could not be reached., false",
  })
  void onlyItsStateDisablesAKey(String message, boolean disabled) {
    String body = "{\"error\": {\"status\": \"FAILED_PRECONDITION\", \"message\": \"%s\"}}";
    assertThat(error(400, String.format(body, message)))
        .isExactlyInstanceOf(disabled ? KeyDisabledException.class : IcebergCryptoException.class)
        .hasMessageContaining("cannot use key 'k': " + message);
  }

  @ParameterizedTest
  @CsvSource({"DISABLED, false", "DESTROY_SCHEDULED, true", "DESTROYED, true"})
  void aKeyThatIsDisabledIsNotDestroyed(String state, boolean destroyed) {
    String body =
        "{\"error\": {\"status\": \"FAILED_PRECONDITION\", \"message\": \"k/cryptoKeyVersions/1 is"
            + " not enabled, current state is: %s.\"}}";
    assertThat(error(400, String.format(body, state)))
        .isInstanceOfSatisfying(
            KeyDisabledException.class, e -> assertThat(e.isDestroyed()).isEqualTo(destroyed));
  }

  private static IcebergCryptoException error(int status, String body) {
    return new GcpErrors(CONFIG, "k")
        .of("decrypt", new JsonHttp.Answer(status, JsonHttp.object(body), ""));
  }
}
