package io.icebergcrypto.parquet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.KeyNotFoundException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.testing.TestKeystore;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What doctor says of settings for keys in Parquet files. */
class ParquetDoctorTest {
  private static final String FACTORY = "parquet.crypto.factory.class";

  @TempDir private Path folder;
  private final Configuration hadoop = new Configuration(false);

  @BeforeEach
  void settings() throws IOException {
    TestKeystore.create(folder, "k1", "k2")
        .properties()
        .forEach((name, value) -> hadoop.set("iceberg-crypto." + name, value));
    hadoop.set(FACTORY, ParquetCryptoFactory.class.getName());
    hadoop.set("parquet.encryption.footer.key", "k1");
    hadoop.set("parquet.encryption.column.keys", "k2:ssn");
    hadoop.set("parquet.encryption.complete.columns", "true");
  }

  private List<String> warnings() {
    return ((List<?>) ParquetDoctor.examine(hadoop).get("warnings"))
        .stream().map(warning -> ((Map<?, ?>) warning).get("problem").toString()).toList();
  }

  @Test
  void allIsWell() {
    assertThat(ParquetDoctor.examine(hadoop))
        .containsEntry("keys", List.of("k1", "k2"))
        .containsEntry("warnings", List.of());
    assertThat(ParquetDoctor.examine(new Configuration(false))).isNull();
  }

  @ParameterizedTest
  @CsvSource({
    "parquet.encryption.algorithm, AES_GCM_CTR_V1, changes to pages are not detected",
    "parquet.encryption.plaintext.footer, true, row counts and key ids can be read",
    "parquet.encryption.complete.columns, false, columns that are not named are plaintext",
    "iceberg-crypto.parquet.plaintext-writes, allow, a write without keys is plaintext",
    "iceberg-crypto.hudi.plaintext, allow, Hudi's logs and indexes are plaintext",
  })
  void whatIsWeakIsAWarning(String name, String value, String told) {
    hadoop.set(name, value);
    assertThat(warnings()).singleElement().asString().contains(told);
  }

  /** Hudi hands no option of a write on to the tasks that ask for it. */
  @Test
  void whatHudiDoesNotSeeIsNoAdvice() {
    hadoop.set("iceberg-crypto.hudi.plaintext", "allow");
    assertThat((List<?>) ParquetDoctor.examine(hadoop).get("warnings"))
        .singleElement()
        .extracting(warning -> ((Map<?, ?>) warning).get("hint").toString())
        .asString()
        .contains("start Spark without it")
        .doesNotContain("option");
  }

  @Test
  void anotherFactoryIsAWarning() {
    hadoop.set(FACTORY, "org.apache.parquet.crypto.keytools.PropertiesDrivenCryptoFactory");
    assertThat(warnings()).singleElement().asString().contains("unknown to this project");
  }

  @Test
  void settingsThatDoNothingFail() {
    hadoop.unset(FACTORY);
    assertFails("is not set: files are plaintext");
    hadoop.set(FACTORY, ParquetCryptoFactory.class.getName());
    hadoop.unset("iceberg-crypto.encryption.kms-type");
    assertFails("no KMS is");
    hadoop.set("iceberg-crypto.parquet.plaintext-reed", "refuse");
    assertFails("There is no property iceberg-crypto.parquet.plaintext-reed");
  }

  @ParameterizedTest
  @CsvSource({
    "parquet.summary.metadata.level, ALL",
    "parquet.writer.version, v2",
  })
  void settingsThatRefuseEachWriteFail(String name, String value) {
    hadoop.set(name, value);
    assertThatThrownBy(() -> ParquetDoctor.examine(hadoop))
        .isInstanceOf(NotSupportedException.class)
        .hasMessageContaining(name + "=" + value);
  }

  private void assertFails(String message) {
    assertThatThrownBy(() -> ParquetDoctor.examine(hadoop))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining(message);
  }

  @Test
  void keysThatCannotBeUsedFail() {
    hadoop.set("parquet.encryption.column.keys", "k3:ssn");
    assertThatThrownBy(() -> ParquetDoctor.examine(hadoop))
        .isInstanceOf(KeyNotFoundException.class)
        .hasMessageContaining("k3");
    hadoop.set("parquet.encryption.column.keys", "k2:ssn");
    hadoop.set("iceberg-crypto.encryption.allowed-key-ids", "k1");
    assertThatThrownBy(() -> ParquetDoctor.examine(hadoop))
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("'k2'");
  }
}
