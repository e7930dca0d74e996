package io.icebergcrypto.orc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What doctor says of settings for keys in ORC files. */
class OrcDoctorTest {
  @TempDir private Path folder;
  private final Configuration hadoop = new Configuration(false);

  @BeforeEach
  void settings() throws IOException {
    TestKeystore.create(folder, "k1", "arn:k;2`3")
        .properties()
        .forEach((name, value) -> hadoop.set("iceberg-crypto." + name, value));
    hadoop.set("orc.key.provider", "iceberg-crypto-" + UUID.randomUUID());
    hadoop.set("orc.encrypt", "k1:ssn,`a;b`;`arn:k;2``3`:street");
  }

  private List<String> warnings() {
    return ((List<?>) OrcDoctor.examine(hadoop).get("warnings"))
        .stream().map(warning -> ((Map<?, ?>) warning).get("problem").toString()).toList();
  }

  @Test
  void keysAreTried() {
    assertThat(OrcDoctor.examine(hadoop)).containsEntry("keys", List.of("k1", "arn:k;2`3"));
    assertThat(warnings())
        .singleElement()
        .asString()
        .contains("AES-CTR: changes to data are not detected");
    hadoop.unset("orc.encrypt");
    assertThat(OrcDoctor.examine(hadoop))
        .isEqualTo(Map.of("keys", List.of(), "warnings", List.of()));
    assertThat(OrcDoctor.examine(new Configuration(false))).isNull();
  }

  @Test
  void plaintextThatIsAllowedIsAWarning() {
    hadoop.set("iceberg-crypto.orc.plaintext-writes", "allow");
    assertThat(warnings())
        .hasSize(2)
        .last()
        .asString()
        .contains("a write without keys is plaintext");
  }

  @Test
  void aListMayBeLong() {
    String columns =
        IntStream.range(0, 3_000).mapToObj(i -> "`a``b" + i + "`").collect(Collectors.joining(","));
    hadoop.set("orc.encrypt", "k1:" + columns);
    assertThat(OrcDoctor.examine(hadoop)).containsEntry("keys", List.of("k1"));
    hadoop.set("orc.encrypt", "k1:" + columns + "`");
    assertThatThrownBy(() -> OrcDoctor.examine(hadoop)).hasMessageContaining("cannot be read");
  }

  @ParameterizedTest
  @CsvSource({
    "orc.encrypt, k1, cannot be read",
    "orc.encrypt, k1:, cannot be read",
    "orc.encrypt, arn:k:ssn, cannot be read",
    "orc.encrypt, k1:ssn;k2:`b, cannot be read",
    "orc.encrypt, '', nothing would be encrypted",
    "orc.encrypted, k1:ssn, ORC has no property orc.encrypted",
    "Orc.Encrypt, k1:ssn, ORC has no property Orc.Encrypt",
    "orc.key.provider, iceberg-krypto, is not a key provider",
    "orc.key.provider, nobody, not known to ORC",
    "orc.key.provider, hadoop, Key provider 'hadoop' (orc.key.provider) has no key 'k1'",
    "iceberg-crypto.orc.require-integrity, true, authenticates nothing",
    "iceberg-crypto.orc.missing-key, fail, There is no property iceberg-crypto.orc.missing-key",
    "iceberg-crypto.missing-keys, fail, There is no property iceberg-crypto.missing-keys",
    "iceberg-crypto.encryption.kms-type, '', encryption.kms-type",
  })
  void settingsThatDoNothingFail(String name, String value, String told) {
    hadoop.set("orc.mask", "sha256:ssn");
    hadoop.set(name, value);
    assertThatThrownBy(() -> OrcDoctor.examine(hadoop))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(told);
  }

  @Test
  void aMisspeltProviderFailsWithoutKeysToo() {
    hadoop.unset("orc.encrypt");
    hadoop.set("orc.key.provider", "nobody");
    assertThatThrownBy(() -> OrcDoctor.examine(hadoop))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("not known to ORC");
  }

  @Test
  void keysThatCannotBeUsedFail() {
    hadoop.set("orc.encrypt", "k3:ssn");
    assertThatThrownBy(() -> OrcDoctor.examine(hadoop))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("k3");
    hadoop.set("orc.encrypt", "k1:ssn");
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k2");
    hadoop.set("orc.key.provider", "iceberg-crypto-" + UUID.randomUUID());
    assertThatThrownBy(() -> OrcDoctor.examine(hadoop))
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("'k1'");
  }
}
