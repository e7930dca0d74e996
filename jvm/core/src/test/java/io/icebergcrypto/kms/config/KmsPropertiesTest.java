package io.icebergcrypto.kms.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class KmsPropertiesTest {
  @ParameterizedTest
  @CsvSource({
    "keystore, encryption.kms.retry.max-attemps, encryption.kms.retry.max-attempts",
    "vault, encryption.kms.vault.adress, encryption.kms.vault.address",
    "vault, encryption.kms.call-timeout, encryption.kms.call-timeout-ms",
    "aws, encryption.kms.aws.endpiont, encryption.kms.aws.endpoint",
    "aws, encryption.kms.aws.encryption-contxt.a, encryption.kms.aws.encryption-context.NAME",
    "aws, encryption.kms.aws.encryption-context, encryption.kms.aws.encryption-context.NAME",
    "aws, encryption.kms.aws.encryption-context., encryption.kms.aws.encryption-context.NAME",
  })
  void aMisspeltOneIsRefused(String type, String name, String nearest) {
    assertThatThrownBy(() -> KmsProperties.check(type, Map.of(name, "x")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(
            "There is no catalog property " + name, "Did you mean " + nearest + "?")
        .hasMessageNotContaining(type + "., ");
  }

  @Test
  void oneOfAnotherKmsIsRefused() {
    assertThatThrownBy(
            () -> KmsProperties.check("keystore", Map.of("encryption.kms.vault.address", "x")))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll(
            "encryption.kms.vault.address", "KMS type vault", "keystore", "hint:");
  }

  @Test
  void whatDecidesWhereKeysGo() {
    Map<String, String> properties =
        Map.of(
            "encryption.kms-type", "aws",
            "Encryption.Kms.aws.endpoint", "a",
            "kms.endpoint", "b",
            "client.assume-role.arn", "c",
            "azure.keyvault.url", "d",
            "encryption.kms.cache.ttl-ms", "1",
            "encryption.kms.retry.max-attempts", "2",
            "s3.endpoint", "e",
            "uri", "f");
    assertThat(KmsProperties.deciding(properties))
        .containsOnlyKeys(
            "encryption.kms-type",
            "encryption.kms.aws.endpoint",
            "kms.endpoint",
            "client.assume-role.arn",
            "azure.keyvault.url");
    assertThat(properties.keySet().stream().filter(KmsProperties::isOfKms)).hasSize(7);
    Map<String, String> twice = Map.of("encryption.kms.my.url", "a", "encryption.kms.my.URL", "b");
    assertThatThrownBy(() -> KmsProperties.deciding(twice))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("encryption.kms.my.", "is set twice");
  }

  @ParameterizedTest
  @CsvSource({
    "keystore, encryption.kms.keystore.path",
    "keystore, Encryption.KMS.Cache.TTL-ms",
    "aws, encryption.kms.aws.encryption-context.Department",
    "aws, encryption.kms.aws.session-token", // its client says what to use instead
    "aws, kms.endpoint",
    "vault, encryption.kms-type",
    "vault, encryption.kms-typo",
  })
  void theOthersAreNoneOfIts(String type, String name) {
    assertThatCode(() -> KmsProperties.check(type, Map.of(name, "x"))).doesNotThrowAnyException();
  }
}
