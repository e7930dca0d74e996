package io.icebergcrypto.commit;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.StatisticsPaths;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * The {@code encryption-keys} that a commit leaves in the metadata: those that something needs, and
 * no others. Iceberg adds a key with each snapshot and removes none.
 *
 * <p>Needed are the key of the manifest list of each snapshot that the metadata has (of a branch, a
 * tag, staged or in the history alone), those of the statistics files that it lists, and the KEKs
 * that encrypt these. A KEK that encrypts nothing stays as long as a commit may take it: on a REST
 * catalog a commit that began before this one sends no KEK that was in the metadata then, and is no
 * conflict; and a manifest that a job of Flink has staged is under one. So it goes when it is
 * {@link #RETIRED}, or {@link #REPLACED} by a newer one, and never if it is the newest: by it the
 * table is known to be encrypted. What cannot be told stays.
 *
 * <p>All snapshots are at hand: Iceberg's {@link TableMetadata.Builder} has loaded those that a
 * REST catalog loads late.
 */
public final class KeyRetention {
  /**
   * How long a newer KEK is there until no commit still takes an older one: those that began before
   * it have ended, clocks that differ included. Later ones take the newest.
   */
  static final Duration REPLACED = Duration.ofDays(30);

  /**
   * The age from which no commit takes a KEK: Iceberg's limit of 730 days (NIST SP 800-57 part 1
   * rev. 5, section 5.3.6.7.b), and the same time for commits that began before it.
   */
  static final Duration RETIRED = Duration.ofMillis(Kek.LIFE_MS).plus(REPLACED);

  // in this order: Iceberg removes the first of a long list fastest
  private final Map<String, EncryptedKey> keys = new LinkedHashMap<>();
  private final Set<String> keks = new HashSet<>();

  private KeyRetention(TableMetadata metadata) {
    metadata.encryptionKeys().forEach(key -> keys.put(key.keyId(), key));
    Kek.all(metadata).forEach(kek -> keks.add(kek.keyId()));
  }

  /**
   * Adds the keys of new snapshots and of statistics files where they are missing, no matter who
   * made the metadata.
   *
   * @param manager the table's; asked for only when a key may be missing
   * @return the same metadata when it has them
   * @throws IcebergCryptoException when nobody knows the key of a new snapshot, or the KEK of it or
   *     of a new statistics file
   */
  static TableMetadata withMissing(
      TableMetadata metadata, Supplier<TableEncryptionManager> manager) {
    Map<String, EncryptedKey> present = new KeyRetention(metadata).keys;
    Map<String, EncryptedKey> missing = new LinkedHashMap<>();
    for (MetadataUpdate change : metadata.changes()) {
      if (change instanceof MetadataUpdate.AddSnapshot added
          && metadata.snapshot(added.snapshot().snapshotId()) != null) {
        String id = added.snapshot().keyId();
        if (id != null && !isWhole(id, present)) {
          missing.put(id, known(id, manager.get()));
        }
      }
    }

    Set<String> added = StatisticsPaths.added(metadata);
    for (String path : StatisticsPaths.of(metadata)) {
      EncryptedKey key = manager.get().statisticsKey(path);
      if (key != null && !isWhole(key.keyId(), present)) {
        if (manager.get().key(key.encryptedById()) != null) {
          missing.put(key.keyId(), key);
        } else if (added.contains(path)) {
          throw lost(path, key, manager.get());
        } // else it was lost before
      }
    }

    if (missing.isEmpty()) {
      return metadata;
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    for (EncryptedKey key : missing.values()) {
      builder.addEncryptionKey(known(key.encryptedById(), manager.get()));
      builder.addEncryptionKey(key);
    }

    return builder.build();
  }

  /** Whether a key is there with its KEK, which may be another one than the manager knows. */
  private static boolean isWhole(String id, Map<String, EncryptedKey> present) {
    EncryptedKey key = present.get(id);
    return key != null && (key.encryptedById() == null || present.containsKey(key.encryptedById()));
  }

  private static EncryptedKey known(String id, TableEncryptionManager manager) {
    EncryptedKey key = manager.key(id);
    if (key == null) {
      throw new IcebergCryptoException(
              String.format("a new snapshot needs key %s, which is not in encryption-keys", id),
              "Nothing was committed: nobody could read that snapshot. Load the table again, and"
                  + " write again what the snapshot was to hold.")
          .inTable(manager.tableName());
    }

    return key;
  }

  private static IcebergCryptoException lost(
      String path, EncryptedKey key, TableEncryptionManager manager) {
    return new IcebergCryptoException(
            String.format(
                "statistics file %s needs KEK %s, which is not in encryption-keys",
                path, key.encryptedById()),
            "Nothing was committed: nobody could read that file. Load the table again, and compute"
                + " the statistics again.")
        .inTable(manager.tableName());
  }

  /**
   * Removes the keys that nothing needs.
   *
   * @param manager the table's; it keeps what goes for a while, as older metadata is still read, by
   *     expire_snapshots for one
   * @return the same metadata when all are needed
   */
  static TableMetadata pruned(TableMetadata metadata, Supplier<TableEncryptionManager> manager) {
    TableMetadata pruned = pruned(metadata, manager, System.currentTimeMillis());
    if (pruned != metadata) {
      manager.get();
    }

    return pruned;
  }

  /**
   * The same, at a time.
   *
   * @param now the time in milliseconds since the epoch, which tells how old a KEK is
   */
  static TableMetadata pruned(
      TableMetadata metadata, Supplier<TableEncryptionManager> manager, long now) {
    KeyRetention all = new KeyRetention(metadata);
    Set<String> needed = all.needed(metadata, path -> manager.get().statisticsKey(path), now);
    if (needed.containsAll(all.keys.keySet())) {
      return metadata;
    }

    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    all.keys.keySet().stream()
        .filter(id -> !needed.contains(id))
        .forEach(builder::removeEncryptionKey);
    return builder.build();
  }

  /**
   * The ids of the keys that nothing needs: those that the next commit removes, in their order.
   *
   * @param now the time in milliseconds since the epoch, which tells how old a KEK is
   */
  public static Set<String> unneeded(TableMetadata metadata, long now) {
    KeyRetention all = new KeyRetention(metadata);
    Map<String, EncryptedKey> statistics = new HashMap<>(); // the last one of a path counts
    for (EncryptedKey key : all.keys.values()) {
      statistics.put(TableEncryptionManager.statisticsPath(key), key);
    }

    Set<String> unneeded = new LinkedHashSet<>(all.keys.keySet());
    unneeded.removeAll(all.needed(metadata, statistics::get, now));
    return unneeded;
  }

  private Set<String> needed(
      TableMetadata metadata, Function<String, EncryptedKey> statisticsKey, long now) {
    Set<String> needed = new HashSet<>();
    metadata.snapshots().stream().map(Snapshot::keyId).forEach(id -> need(id, needed));
    Set<String> statistics = StatisticsPaths.of(metadata);
    for (EncryptedKey key : keys.values()) {
      String path = TableEncryptionManager.statisticsPath(key);
      boolean listed = path != null && statistics.contains(path);
      if (listed && !replaced(key, statisticsKey.apply(path)) || isOfAnother(key, path)) {
        need(key.keyId(), needed);
      }
    }

    List<EncryptedKey> all = keys.values().stream().filter(this::isKek).toList();
    EncryptedKey newest = all.stream().max(Comparator.comparingLong(Kek::madeAt)).orElse(null);
    long settled = settledAt(all, EncryptionProperties.keyId(metadata.properties()), now);
    all.stream()
        .filter(kek -> kek == newest || !isRetired(kek, settled, now))
        .forEach(kek -> needed.add(kek.keyId()));
    return needed;
  }

  /**
   * When the newest of the KEKs was made that are there for {@link #REPLACED}, and that commits
   * take: no commit takes an older one. A KEK of another master key replaces none.
   */
  private static long settledAt(List<EncryptedKey> keks, String masterKeyId, long now) {
    return keks.stream()
        .filter(kek -> kek.encryptedById() != null && kek.encryptedById().equals(masterKeyId))
        .mapToLong(Kek::madeAt)
        .filter(made -> now - made > REPLACED.toMillis())
        .max()
        .orElse(0);
  }

  /** A key, and what encrypts it. */
  private void need(String id, Set<String> needed) {
    EncryptedKey key = keys.get(id);
    while (key != null && needed.add(key.keyId())) {
      key = keys.get(key.encryptedById());
    }
  }

  /** Whether a statistics file was written again, under another key. */
  private static boolean replaced(EncryptedKey key, EncryptedKey last) {
    return last != null && !last.keyId().equals(key.keyId());
  }

  /** Whether a key is one of a kind that neither Iceberg nor this catalog makes. */
  private boolean isOfAnother(EncryptedKey key, String statisticsPath) {
    boolean hasProperties = key.properties() != null && !key.properties().isEmpty();
    return !isKek(key) && statisticsPath == null && hasProperties;
  }

  private boolean isKek(EncryptedKey key) {
    return keks.contains(key.keyId());
  }

  private static boolean isRetired(EncryptedKey kek, long settled, long now) {
    long made = Kek.madeAt(kek);
    return made > 0 && (made < settled || now - made > RETIRED.toMillis());
  }
}
