package io.icebergcrypto.catalog.behind;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which versions of Hive's metastore compare the location of the metadata that a commit is for. */
class HiveLocksTest {
  @ParameterizedTest
  @CsvSource({
    "2.3.9, false",
    "2.3.9-amzn-2, false",
    "2.3.10, true",
    "2.4.10, false",
    "3.1.3, false",
    "4.0.1, true",
    "Unknown, false"
  })
  void comparesLocations(String version, boolean compares) {
    assertThat(HiveLocks.comparesLocations(version)).isEqualTo(compares);
  }
}
