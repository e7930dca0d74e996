package io.icebergcrypto.kms.blob;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.InvalidConfigurationException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class KeyVersionsTest {
  @Test
  void theFirstVersionHasTheKeysOwnName() {
    assertThat(KeyVersions.entry("k", 1)).isEqualTo("k");
    assertThat(KeyVersions.entry("k", 2)).isEqualTo("k.v2");
    assertThat(KeyVersions.entry("k", 12)).isEqualTo("k.v12");
  }

  @Test
  void theNewestIsTheHighestNumber() {
    assertThat(KeyVersions.newest("k", List.of())).isZero();
    assertThat(KeyVersions.newest("k", List.of("k"))).isEqualTo(1);
    assertThat(KeyVersions.newest("k", List.of("k.v2", "k", "k.v10", "k.v9"))).isEqualTo(10);
    assertThat(KeyVersions.newest("k", List.of("k.v3"))).isEqualTo(3);
  }

  @Test
  void otherKeysAndLookalikesDoNotCount() {
    List<String> others =
        List.of(
            "kk.v2", "k.v2.v3", "K.v2", "k.v1", "k.v0", "k.v02", "k.v-2", "k.vx", "k.v", "kxv2");
    assertThat(KeyVersions.newest("k", others)).isZero();
    assertThat(KeyVersions.newest("k", List.of("k.v1234567890"))).isZero();
    assertThat(KeyVersions.newest("a.b", List.of("a.b", "axb.v2", "a.b.v2"))).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(strings = {"k.v2", "k.v1", "sales.eu.v13"})
  void theNameOfAVersionIsNoKeyId(String name) {
    assertThat(KeyVersions.isKeyId(name)).isFalse();
    assertThatThrownBy(() -> KeyVersions.requireKeyId(name, "keystore x"))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContainingAll("'" + name + "'", "keystore x");
  }

  @ParameterizedTest
  @ValueSource(strings = {"k", "v2", ".v2", "k.v", "k.v2x", "k-v2", "k.v0"})
  void otherNamesAre(String name) {
    assertThat(KeyVersions.isKeyId(name)).isTrue();
    assertThatCode(() -> KeyVersions.requireKeyId(name, "keystore x")).doesNotThrowAnyException();
  }
}
