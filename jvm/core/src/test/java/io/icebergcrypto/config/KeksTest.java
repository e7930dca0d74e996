package io.icebergcrypto.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.icebergcrypto.AccessDeniedException;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.junit.jupiter.api.Test;

/** A key whose KEK is gone is no KEK; all that may be one is. */
class KeksTest {
  private static final String GONE = "q83vASNFZ4mrze8BI0VniQ==";
  private static final EncryptedKey KEK = key("kek", "k1", Map.of(Kek.TIMESTAMP, "1"));

  private static EncryptedKey key(String id, String by, Map<String, String> properties) {
    return new BaseEncryptedKey(id, ByteBuffer.allocate(16), by, properties);
  }

  private static TableMetadata metadata(String keyId, EncryptedKey... keys) {
    TableMetadata.Builder builder =
        TableMetadata.buildFrom(
            TestLake.metadata(
                "s3://b/t", Map.of("format-version", "3", "encryption.key-id", keyId)));
    List.of(keys).forEach(builder::addEncryptionKey);
    return builder.build();
  }

  private static List<String> keks(String keyId, EncryptedKey... keys) {
    return Keks.of(metadata(keyId, keys)).stream().map(EncryptedKey::keyId).toList();
  }

  @Test
  void aKeyOfAManifestListWhoseKekIsGoneIsNone() {
    EncryptedKey orphan = key("list", GONE, null);
    assertThat(keks("k1", KEK, orphan)).containsExactly("kek");
    EncryptedKey ofStatistics = key("stats", GONE, Map.of("statistics-path", "/t/1.puffin"));
    assertThat(keks("k1", KEK, ofStatistics)).containsExactly("kek");
    TableMetadata metadata = metadata("k1", orphan, KEK);
    assertThat(EncryptionProperties.masterKeyId(metadata)).isEqualTo("k1");
    AllowedKeyIds.parse("k1").check("lake.db.t", metadata);
  }

  /** What cannot be told is one: of another client, of a former master key, of a later purpose. */
  @Test
  void whatMayBeAKekIsOne() {
    for (EncryptedKey one :
        List.of(
            key("x", GONE, Map.of(Kek.TIMESTAMP, "1")),
            key("x", GONE, Map.of("owner", "someone")),
            key("x", "k0", Map.of()),
            key("x", "1234abcd-12ab-34cd-56ef-1234567890ab", null))) {
      assertThat(keks("k1", KEK, one)).containsExactly("kek", "x");
      assertThatThrownBy(() -> AllowedKeyIds.parse("k1").check("t", metadata("k1", KEK, one)))
          .isInstanceOf(AccessDeniedException.class)
          .hasMessageContaining(one.encryptedById());
    }

    EncryptedKey own = key("x", GONE, null);
    assertThat(keks(GONE, KEK, own)).as("the table's master key").containsExactly("kek", "x");
    EncryptedKey encrypted = key("list", "x", null);
    assertThat(keks("k1", KEK, own, encrypted)).as("it encrypts").containsExactly("kek", "x");
  }
}
