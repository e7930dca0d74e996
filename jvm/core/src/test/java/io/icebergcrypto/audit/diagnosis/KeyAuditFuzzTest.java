package io.icebergcrypto.audit.diagnosis;

import static org.assertj.core.api.Assertions.assertThat;

import io.icebergcrypto.audit.UncachedKms;
import io.icebergcrypto.audit.diagnosis.KeyEntry.Kind;
import io.icebergcrypto.config.AllowedKeyIds;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.format.Json;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.kms.KmsClients;
import io.icebergcrypto.testing.Fuzz;
import io.icebergcrypto.testing.PlainKms;
import io.icebergcrypto.testing.TestLake;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.inmemory.InMemoryFileIO;
import org.junit.jupiter.api.Test;

/**
 * The keys of metadata that an attacker wrote: any ids, any bytes, keys that encrypt each other.
 */
class KeyAuditFuzzTest {
  private static final String[] IDS = {"k1", "k2", "a", "b", "c", "", "a\u0000\n[red]"};
  private static final String[] TIMES = {"0", "-1", "1700000000000", "99999999999999", "then", ""};

  @Test
  void hostileKeys() throws Exception {
    try (CachingKmsClient client =
        KmsClients.create(Map.of("encryption.kms-impl", PlainKms.class.getName()))) {
      Fuzz.run(
          10,
          round -> {
            TableMetadata metadata = metadata(round);
            Set<String> ids =
                Stream.concat(
                        metadata.encryptionKeys().stream().map(EncryptedKey::keyId),
                        metadata.properties().keySet().stream()
                            .filter(name -> name.startsWith(ValueKeyProperties.PREFIX))
                            .map(name -> name.substring(ValueKeyProperties.PREFIX.length())))
                    .collect(Collectors.toSet());
            BaseTable table =
                new BaseTable(new StaticTableOperations(metadata, new InMemoryFileIO()), "lake.t");
            AuditedKms kms =
                new AuditedKms(new UncachedKms(() -> client, null, "lake.t", metadata.uuid()));
            List<KeyEntry> keys =
                new KeyAudit(table, kms, 730, false, AllowedKeyIds.parse(null)).keys(null);
            assertThat(
                    keys.stream()
                        .filter(key -> key.kind() != Kind.MASTER)
                        .map(KeyEntry::keyId)
                        .collect(Collectors.toSet()))
                .as("each entry has a row, and nothing else has")
                .isEqualTo(ids);
            keys.forEach(key -> assertThat(Json.map(key)).containsKey("problem"));
            return round.random().nextInt(100) > 0; // it refuses nothing
          });
    }
  }

  private static TableMetadata metadata(Fuzz round) {
    Map<String, String> properties = new HashMap<>(Map.of("format-version", "3"));
    if (round.random().nextInt(4) > 0) {
      properties.put("encryption.key-id", round.oneOf(IDS));
    }

    if (round.random().nextBoolean()) {
      properties.put("encryption.data-key-length", round.oneOf("16", "17", "x", ""));
    }

    for (int i = round.random().nextInt(3); i > 0; i--) {
      properties.put(
          ValueKeyProperties.PREFIX + round.oneOf("a.0000000", "b", "a.b.zz", "../a.") + i * 2,
          round.oneOf(
              "{}",
              "",
              "[1",
              "{\"created-at-ms\":1,\"master-key-id\":\"k1\",\"wrapped-key\":\"AAAA\","
                  + "\"check-value\":\"v1.00\"}",
              "{\"created-at-ms\":99999999999999,\"master-key-id\":\"\",\"wrapped-key\":\"\","
                  + "\"check-value\":\"v1.00\"}",
              "{\"created-at-ms\":\"then\",\"master-key-id\":[],\"wrapped-key\":\"*\"}"));
    }

    TableMetadata.Builder metadata =
        TableMetadata.buildFrom(
            TableMetadata.newTableMetadata(
                TestLake.SCHEMA,
                PartitionSpec.unpartitioned(),
                SortOrder.unsorted(),
                "t",
                properties));
    Set<String> ids = new HashSet<>();
    for (int i = round.random().nextInt(6); i > 0; i--) {
      String id = round.oneOf(IDS) + round.random().nextInt(3);
      if (ids.add(id)) {
        metadata.addEncryptionKey(key(round, id));
      }
    }

    return metadata.build();
  }

  private static EncryptedKey key(Fuzz round, String id) {
    Map<String, String> properties = new HashMap<>();
    if (round.random().nextInt(3) > 0) {
      properties.put("KEY_TIMESTAMP", round.oneOf(TIMES));
    }

    if (round.random().nextInt(4) == 0) {
      properties.put("statistics-path", round.oneOf("s3://b/x.stats", "", "\u0000"));
    }

    String by =
        round.random().nextInt(4) == 0
            ? null
            : round.oneOf(IDS) + round.oneOf("", "0", "1", "2", id);
    byte[] bytes = round.random().nextBoolean() ? new byte[16] : round.bytes(80);
    return new BaseEncryptedKey(id, ByteBuffer.wrap(bytes), by, properties);
  }
}
