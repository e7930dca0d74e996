package io.icebergcrypto.kms.hadoop;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HadoopErrorsTest {
  private static final HadoopConfig CONFIG =
      HadoopConfig.of(Map.of(HadoopConfig.URI_PROPERTY, "kms://https@kms:9600/kms"));

  @ParameterizedTest
  @CsvSource({
    "User [bob] is not authorized to perform [DECRYPT_EEK] on key with ACL name [k]!!, true",
    "User:bob not allowed to do 'DECRYPT_EEK' on 'k', true",
    "User: spark is not allowed to impersonate bob, false",
    "Unauthorized connection for super-user: spark from IP 10.0.0.7, false",
    "'', false",
  })
  void onlyWhatTheKeysListsRefuseIsOfTheKey(String message, boolean ofKey) {
    String body =
        "{\"RemoteException\": {\"message\": \"%s\", \"exception\": \"AuthorizationException\"}}";
    IcebergCryptoException error =
        new HadoopErrors(CONFIG)
            .of(
                new JsonHttp.Answer(403, JsonHttp.object(String.format(body, message)), Map.of()),
                HadoopKeys.DECRYPT,
                "k");
    assertThat(error).isExactlyInstanceOf(AccessDeniedException.class);
    assertThat(Causes.isOfKey(error)).isEqualTo(ofKey);
  }
}
