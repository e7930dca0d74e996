package io.icebergcrypto.config;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class IcebergVersionTest {
  @ParameterizedTest
  @ValueSource(strings = {"1.12.0", "1.12.3", "1.13.0-SNAPSHOT", "1.112.0"})
  void takesWhatItWasBuiltForAndLaterOnes(String version) {
    assertThatCode(() -> IcebergVersion.check(version)).doesNotThrowAnyException();
  }

  @ParameterizedTest
  @ValueSource(strings = {"1.11.0", "1.9.2", "0.14.1", "2.0.0", "unknown", ""})
  void refusesOthersAndNamesThem(String version) {
    assertThatThrownBy(() -> IcebergVersion.check(version))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("for Iceberg 1.12 or later, below 2.0; this is", version)
        .extracting(e -> ((IcebergCryptoException) e).hint())
        .asString()
        .contains("spark.jars.packages");
  }

  @Test
  void takesTheOneThatIsHere() {
    assertThatCode(IcebergVersion::check).doesNotThrowAnyException();
  }
}
