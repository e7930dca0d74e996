package io.icebergcrypto.kms.hadoop;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.KmsUnavailableException;
import io.icebergcrypto.kms.call.Causes;
import io.icebergcrypto.kms.http.JsonHttp;
import java.util.Map;
import org.junit.jupiter.api.Test;
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
    IcebergCryptoException error = error(403, String.format(body, message));
    assertThat(error).isExactlyInstanceOf(AccessDeniedException.class);
    assertThat(Causes.isOfKey(error)).isEqualTo(ofKey);
  }

  /** What is missing may be a part of the KMS itself. */
  @ParameterizedTest
  @CsvSource({
    "No KeyVersion exists for key 'k', true",
    "'k@1' not found, true",
    "KeyVersion name 'k@1' does not exist, true",
    "Principal 'HTTP/kms@REALM' not found, false",
    "'relation \\\"ranger_keystore\\\" does not exist', false",
    "File file:/mnt/kms/kms.keystore does not exist, false",
    "Class 'org.apache.Driver' not found, false",
  })
  void onlyAKeyIsAMissingKey(String message, boolean missing) {
    String body = "{\"RemoteException\": {\"message\": \"%s\", \"exception\": \"IOException\"}}";
    assertThat(error(500, String.format(body, message)))
        .isExactlyInstanceOf(missing ? KeyNotFoundException.class : KmsUnavailableException.class);
  }

  /** On decrypt the KMS names only the version, also where the whole key is gone. */
  @Test
  void aMissingVersionIsNoMissingKey() {
    String body = "{\"RemoteException\": {\"message\": \"No KeyVersion exists for key 'k'\"}}";
    assertThat(Causes.isOfKey(error(500, body))).isFalse();
    assertThat(Causes.isOfKey(error(500, body, HadoopKeys.GENERATE))).isTrue();
  }

  private static IcebergCryptoException error(int status, String body) {
    return error(status, body, HadoopKeys.DECRYPT);
  }

  private static IcebergCryptoException error(int status, String body, String operation) {
    return new HadoopErrors(CONFIG)
        .of(new JsonHttp.Answer(status, JsonHttp.object(body), ""), operation, "k");
  }
}
