package io.icebergcrypto.config;

import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * Which of a table's keys are KEKs: those that no other key of the table encrypts.
 *
 * <p>The key of a manifest list whose KEK was removed before it looks like one. It is no KEK: its
 * snapshot is gone, it encrypts nothing, and what it names is a KEK's id, not a master key's. A KEK
 * of any client says when it was made: Iceberg and iceberg-rust encrypt with no other.
 */
public final class Keks {
  /** An id as Iceberg gives it to a KEK: 16 bytes. No KMS names a master key so. */
  private static final Pattern ID_OF_KEK = Pattern.compile("[A-Za-z0-9+/]{22}==");

  /** The property of a statistics file's key: where the file is. Its KEK may be gone, too. */
  public static final String STATISTICS_PATH = "statistics-path";

  private final TableMetadata metadata;
  private final Set<String> ids = new HashSet<>();
  private final Set<String> encrypting = new HashSet<>();
  private Set<String> keysOfSnapshots;

  private Keks(TableMetadata metadata) {
    this.metadata = metadata;
    for (EncryptedKey key : metadata.encryptionKeys()) {
      ids.add(key.keyId());
      encrypting.add(key.encryptedById());
    }
  }

  /** The KEKs of a table, in their order. */
  public static List<EncryptedKey> of(TableMetadata metadata) {
    Keks keks = new Keks(metadata);
    return metadata.encryptionKeys().stream().filter(keks::isKek).toList();
  }

  /**
   * The ids of the master keys that a table's KEKs need: one, but during a rotation. What encrypts
   * another key is a KEK, even if there is a key with its master key's id, which would hide it.
   */
  public static Stream<String> masterKeyIds(TableMetadata metadata) {
    Keks keks = new Keks(metadata);
    return metadata.encryptionKeys().stream()
        .filter(key -> key.encryptedById() != null)
        .filter(key -> keks.isKek(key) || keks.encrypting.contains(key.keyId()))
        .map(EncryptedKey::encryptedById)
        .distinct();
  }

  private boolean isKek(EncryptedKey key) {
    return !ids.contains(key.encryptedById()) && !isOrphan(key);
  }

  private boolean isOrphan(EncryptedKey key) {
    return key.encryptedById() != null
        && (key.properties() == null
            || Set.of(STATISTICS_PATH).containsAll(key.properties().keySet()))
        && !encrypting.contains(key.keyId())
        && ID_OF_KEK.matcher(key.encryptedById()).matches()
        && !key.encryptedById().equals(EncryptionProperties.keyId(metadata.properties()))
        && !keysOfSnapshots().contains(key.keyId());
  }

  /** Asked for last: a REST catalog may load snapshots for it. */
  private Set<String> keysOfSnapshots() {
    if (keysOfSnapshots == null) {
      this.keysOfSnapshots = new HashSet<>();
      metadata.snapshots().stream()
          .map(Snapshot::keyId)
          .filter(Objects::nonNull)
          .forEach(keysOfSnapshots::add);
    }

    return keysOfSnapshots;
  }
}
