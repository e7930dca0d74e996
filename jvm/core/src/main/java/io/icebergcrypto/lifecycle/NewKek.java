package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Evidence;
import io.icebergcrypto.io.KeyRegisteringManager;
import io.icebergcrypto.io.TableEncryptionManager;
import io.icebergcrypto.metadata.Kek;
import io.icebergcrypto.metadata.KeyedFile;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.encryption.BaseEncryptedKey;
import org.apache.iceberg.encryption.EncryptedKey;
import org.apache.iceberg.encryption.NativeEncryptionKeyMetadata;
import org.apache.iceberg.encryption.StandardEncryptionManager;

/**
 * A KEK that is made for a table, and the metadata with it. It is made once, however often its
 * commit is tried, unless the table has got another master key or a newer KEK meanwhile.
 */
final class NewKek {
  private final RotationTarget table;
  private final boolean rewraps;
  private final boolean removes;
  private final List<String> removed = new ArrayList<>();
  private final List<String> kept = new ArrayList<>();
  private EncryptedKey kek;
  private int rewrapped;

  /**
   * Makes nothing yet.
   *
   * @param rewraps whether the keys of existing files are encrypted with it
   * @param removes whether KEKs go at once that encrypt nothing then. They go by themselves later,
   *     see {@link KeyRetention}: on a REST catalog, a commit of another client that began before
   *     does not conflict, and may need one; on any, so may a manifest that a job of Flink has
   *     staged
   */
  NewKek(RotationTarget table, boolean rewraps, boolean removes) {
    this.table = table;
    this.rewraps = rewraps;
    this.removes = removes;
  }

  String kekId() {
    return kek.keyId();
  }

  /** The id of the master key that wraps it. */
  String masterKeyId() {
    return kek.encryptedById();
  }

  /** How many keys were encrypted again, in the metadata that was made last. */
  int rewrapped() {
    return rewrapped;
  }

  /** The KEKs that are not in the metadata that was made last. */
  List<String> removed() {
    return List.copyOf(removed);
  }

  /** The older KEKs that are in the metadata that was made last. */
  List<String> kept() {
    return List.copyOf(kept);
  }

  /** The metadata with this KEK. */
  TableMetadata in(TableMetadata metadata) {
    String keyId = EncryptionProperties.keyId(metadata.properties());
    EncryptedKey newest = Kek.newest(metadata).orElse(null);
    boolean fits =
        kek != null
            && kek.encryptedById().equals(keyId)
            && (newest == null || Kek.madeAt(newest) < Kek.madeAt(kek));
    if (!fits) {
      this.kek = Kek.make(table.name(), metadata, keyId, table.kms());
    }

    this.rewrapped = 0;
    removed.clear();
    kept.clear();
    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    builder.addEncryptionKey(kek);
    Set<String> unneeded = KeyRetention.unneeded(metadata, System.currentTimeMillis());
    unneeded.forEach(builder::removeEncryptionKey);
    Set<String> stillUsed = encryptAgain(metadata, keyId, unneeded, builder);
    for (EncryptedKey older : Kek.all(metadata)) {
      String id = older.keyId();
      boolean goes = unneeded.contains(id) || rewraps && removes && !stillUsed.contains(id);
      (goes ? removed : kept).add(id);
      if (goes) {
        builder.removeEncryptionKey(id);
      }
    }

    return builder.build();
  }

  /**
   * Encrypts the keys of manifest lists and statistics files with this KEK, if that is wanted.
   *
   * @return the ids of the KEKs that other entries still need
   */
  private Set<String> encryptAgain(
      TableMetadata metadata, String keyId, Set<String> unneeded, TableMetadata.Builder builder) {
    if (!rewraps) {
      return Set.of();
    }

    int length = TableProperties.ENCRYPTION_DEK_LENGTH_DEFAULT; // of keys that they will not make
    TableEncryptionManager older =
        new TableEncryptionManager(
            table.name(), metadata.encryptionKeys(), keyId, length, table.kms());
    StandardEncryptionManager newer =
        TableEncryptionManager.ofIceberg(table.name(), List.of(kek), keyId, length, table.kms());
    Map<String, String> files = files(metadata);
    Set<String> keks =
        Kek.all(metadata).stream().map(EncryptedKey::keyId).collect(Collectors.toSet());
    Set<String> stillUsed = new HashSet<>();
    for (EncryptedKey key : metadata.encryptionKeys()) {
      if (keks.contains(key.keyId()) || unneeded.contains(key.keyId())) {
        continue;
      }

      String file = files.getOrDefault(key.keyId(), TableEncryptionManager.statisticsPath(key));
      if (file == null || !keks.contains(key.encryptedById())) { // another program's
        stillUsed.add(key.encryptedById());
        continue;
      }

      builder.removeEncryptionKey(key.keyId());
      builder.addEncryptionKey(encrypted(key, file, older, newer));
      this.rewrapped++;
    }

    return stillUsed;
  }

  /** What the keys of manifest lists are for. */
  private static Map<String, String> files(TableMetadata metadata) {
    Map<String, String> files = new HashMap<>();
    for (Snapshot snapshot : metadata.snapshots()) {
      if (snapshot.keyId() != null) {
        files.put(snapshot.keyId(), "snapshot " + snapshot.snapshotId());
      }
    }

    return files;
  }

  /** The same key metadata under the same id, encrypted with this KEK. */
  private EncryptedKey encrypted(
      EncryptedKey key,
      String file,
      TableEncryptionManager older,
      StandardEncryptionManager newer) {
    NativeEncryptionKeyMetadata keyMetadata;
    try {
      keyMetadata = KeyedFile.decrypted(key.keyId(), older);
    } catch (IcebergCryptoException e) {
      throw e;
    } catch (RuntimeException e) {
      if (!Evidence.isWrongTag(e)) {
        throw e;
      }

      throw new TamperedException(
              String.format(
                  "the key of %s does not decrypt with KEK %s: one of them was changed",
                  file, key.encryptedById()),
              "Nothing was changed. Restore that metadata file from a backup or an object version.",
              e)
          .inTable(table.name());
    }

    return new BaseEncryptedKey(
        key.keyId(),
        KeyRegisteringManager.register(newer, keyMetadata).encryptedKeyMetadata(),
        kek.keyId(),
        key.properties());
  }
}
