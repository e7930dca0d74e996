package io.icebergcrypto.commit;

import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.Keks;
import io.icebergcrypto.config.ValueKeyProperties;
import io.icebergcrypto.metadata.Kek;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * Refuses metadata that would undo a rotation. Iceberg commits a table's replacement as it was made
 * when the statement began, with the keys and properties of that time, no matter what has been
 * committed since. Any other commit is made of the metadata in force: its changes name each key and
 * property that differs.
 */
final class StaleReplacement {
  private final TableMetadata base;
  private final TableMetadata metadata;
  private final Set<String> removedKeys = new HashSet<>();
  private final Set<String> properties = new HashSet<>();

  private StaleReplacement(TableMetadata base, TableMetadata metadata) {
    this.base = base;
    this.metadata = metadata;
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.RemoveEncryptionKey removed) {
        removedKeys.add(removed.keyId());
      } else if (change instanceof MetadataUpdate.SetProperties set) {
        properties.addAll(set.updated().keySet());
      } else if (change instanceof MetadataUpdate.RemoveProperties removed) {
        properties.addAll(removed.removed());
      }
    }
  }

  /**
   * Refuses metadata that was made before the table's keys, or where its plaintext is, changed.
   *
   * @param merges whether a server applies the changes to what is in force: then only a key id may
   *     be undone, which a replacement always names
   * @throws NotSupportedException not a conflict, after which Iceberg would commit the same again
   */
  static void refuse(Commit commit, TableMetadata metadata, boolean merges) {
    TableMetadata base = commit.base();
    if (base == null || !Objects.equals(base.uuid(), metadata.uuid())) {
      return; // it takes nothing from a table that another client has made meanwhile
    }

    String before = EncryptionProperties.keyId(base.properties());
    String after = EncryptionProperties.keyId(metadata.properties());
    if (before == null || after == null || merges && before.equals(after)) {
      return;
    }

    StaleReplacement stale = new StaleReplacement(base, metadata);
    boolean isRotated = stale.hasOlderKeks();
    String property = stale.olderProperty();
    if (isRotated || property != null) {
      throw new NotSupportedException(
              isRotated
                  ? "its keys were rotated after this statement began"
                  : String.format("property %s was changed after this statement began", property),
              "Nothing was committed. REPLACE TABLE and CREATE OR REPLACE TABLE commit the keys"
                  + " and properties that the table had when they began, which would undo that"
                  + " change. Run the statement again.")
          .inTable(commit.tableName());
    }
  }

  /**
   * The key id of a rotation that a commit has undone; null, where it has not. A REST server
   * applies a replacement, which names the key id that it began with, to whatever is in force. That
   * none was is seen without a look at snapshots, which may be loaded late.
   *
   * @param before the metadata before the commit
   * @param now the metadata with it
   */
  static String undoneKeyId(TableMetadata before, TableMetadata now) {
    String keyId = EncryptionProperties.keyId(now.properties());
    if (before == null
        || keyId == null
        || now.encryptionKeys().stream().anyMatch(key -> keyId.equals(key.encryptedById()))
        || !Keks.masterKeyIds(before).collect(Collectors.toSet()).equals(Set.of(keyId))) {
      return null;
    }

    Set<String> rotated = Keks.masterKeyIds(now).collect(Collectors.toSet());
    return rotated.size() == 1 ? rotated.iterator().next() : null;
  }

  private boolean hasOlderKeks() {
    Map<String, EncryptedKey> keys = new HashMap<>();
    metadata.encryptionKeys().forEach(key -> keys.put(key.keyId(), key));
    return Kek.all(base).stream()
        .filter(kek -> !removedKeys.contains(kek.keyId()))
        .anyMatch(
            kek ->
                !keys.containsKey(kek.keyId()) || !Kek.isWrappedAlike(kek, keys.get(kek.keyId())));
  }

  /** A property that encryption needs, that only its procedures change, and that one did; null. */
  private String olderProperty() {
    Set<String> all = new HashSet<>(base.properties().keySet());
    all.addAll(metadata.properties().keySet());
    return all.stream()
        .filter(
            name ->
                EncryptionProperties.OF_PLAINTEXT.contains(name)
                    || name.startsWith(ValueKeyProperties.PREFIX))
        .filter(name -> !properties.contains(name))
        .filter(
            name -> !Objects.equals(base.properties().get(name), metadata.properties().get(name)))
        .sorted()
        .findFirst()
        .orElse(null);
  }
}
