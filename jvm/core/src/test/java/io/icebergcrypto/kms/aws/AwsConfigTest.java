package io.icebergcrypto.kms.aws;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Names have no case, as in Spark's options; the name of a part of the context keeps its own. */
class AwsConfigTest {
  @Test
  void aPropertyIsReadInAnyCase() {
    AwsConfig config =
        AwsConfig.of(
            Map.of(
                "encryption.kms.aws.Region", "eu-central-1",
                "encryption.kms.aws.Encryption-Context.Department", "x",
                "Client.Credentials-Provider", "org.example.Provider"));
    assertThat(config.region()).isEqualTo("eu-central-1");
    assertThat(config.context()).isEqualTo(Map.of("Department", "x"));
    assertThat(config.hasCredentialsProvider()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({
    "encryption.kms.aws.Secret-Access-Key, would show a secret",
    "encryption.kms.aws.Encryption-Context.AWS:a, reserved by AWS",
    "encryption.kms.aws.Encryption-Context.a, is set twice",
    "encryption.kms.aws.Region, is set twice",
  })
  void orRefused(String name, String problem) {
    Map<String, String> properties =
        Map.of(
            "encryption.kms.aws.region",
            "eu-central-1",
            "encryption.kms.aws.encryption-context.a",
            "y",
            name,
            "x");
    assertThatThrownBy(() -> AwsConfig.of(properties))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(problem);
  }
}
