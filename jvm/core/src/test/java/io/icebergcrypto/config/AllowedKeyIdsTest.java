package io.icebergcrypto.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a list of key ids means. */
class AllowedKeyIdsTest {
  private static final String ARN = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab";
  private static final String GCP =
      "projects/p/locations/europe-west3/keyRings/lake/cryptoKeys/sales";

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "sales | sales | true",
        "sales | sales2 | false",
        "sales | sale | false",
        "sales | Sales | false",
        "sales, hr | hr | true",
        " sales ,\thr | hr | true",
        "sales, hr | sales, hr | false",
        "sales-* | sales- | true",
        "sales-* | sales-eu/west:1.2 | true",
        "sales-* | hr-sales-1 | false",
        "* | anything/at:all | true",
        "*-prod | a-prod | true",
        "*-prod | a-prod-b | false",
        "a*b*c | a-b-b-c | true",
        "a*b*c | a-c-b | false",
        "k? | k1 | true",
        "k? | k | false",
        "k? | k12 | false",
        "k.y | key | false",
        "[ab] | a | false",
        "[ab] | [ab] | true",
        "alias/sales | alias/sales | true",
        "alias/* | " + ARN + " | false",
        "arn:aws:kms:*:111122223333:key/* | " + ARN + " | true",
        "arn:aws:kms:*:999999999999:key/* | " + ARN + " | false",
        "projects/p/*/keyRings/lake/cryptoKeys/* | " + GCP + " | true",
        "projects/q/* | " + GCP + " | false",
        "a\\*b | a*b | true",
        "a\\*b | axb | false",
        "a\\?b | axb | false",
        "a\\,b | a,b | true",
        "a\\,b | a | false",
        "a\\\\b | a\\b | true",
        "a\\\\, b | b | true",
        "k? | k\uD83D\uDD11 | true",
      })
  void aListAllows(String list, String keyId, boolean allowed) {
    assertThat(AllowedKeyIds.parse(list).allows(keyId)).isEqualTo(allowed);
  }

  @Test
  void withoutAListEveryKeyIsAllowed() {
    assertThat(AllowedKeyIds.parse(null).allows("any")).isTrue();
    assertThat(AllowedKeyIds.parse(null).limited()).isFalse();
    assertThat(AllowedKeyIds.parse("*").limited()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"", " ", ",", "a,", ",a", "a,,b", "a, ,b", "a\\", "a\\b", "\\n,a"})
  void aListThatCannotBeUnderstoodIsRefused(String list) {
    assertThatThrownBy(() -> AllowedKeyIds.parse(list))
        .isInstanceOf(InvalidConfigurationException.class)
        .hasMessageContaining("encryption.allowed-key-ids");
  }

  @Test
  void aKeyIdOfAnAttackersCannotMakeMatchingSlow() {
    AllowedKeyIds allowed = AllowedKeyIds.parse("*a*a*a*a*a*a*a*a*a*a*b");
    assertTimeoutPreemptively(
        Duration.ofSeconds(10), () -> assertThat(allowed.allows("a".repeat(20_000))).isFalse());
  }

  /**
   * A list's key by K, K by a master key of the attacker's, and an entry with that master key's id.
   */
  @Test
  void anEntryWithTheIdOfAMasterKeyHidesNone() {
    TableMetadata metadata =
        TableMetadata.buildFrom(
                TestLake.metadata(
                    "s3://b/t", Map.of("format-version", "3", "encryption.key-id", "sales")))
            .addEncryptionKey(entry("evil", "sales"))
            .addEncryptionKey(entry("k", "evil"))
            .addEncryptionKey(entry("list", "k"))
            .build();
    assertThat(Keks.masterKeyIds(metadata)).containsExactlyInAnyOrder("sales", "evil");
    assertThatThrownBy(() -> AllowedKeyIds.parse("sales").check("lake.db.t", metadata))
        .isInstanceOf(AccessDeniedException.class)
        .hasMessageContaining("encryption.key-id is 'evil'");
  }

  private static EncryptedKey entry(String id, String by) {
    return new BaseEncryptedKey(id, ByteBuffer.wrap(new byte[60]), by, Map.of());
  }
}
