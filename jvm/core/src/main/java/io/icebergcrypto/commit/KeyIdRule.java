package io.icebergcrypto.commit;

import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.config.SqlNames;
import io.icebergcrypto.metadata.Kek;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.iceberg.MetadataUpdate;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * A table's key id stays as it is, unless its KEKs are rewrapped in the same commit, or all that it
 * reaches is encrypted by it.
 */
public final class KeyIdRule {
  private KeyIdRule() {}

  /**
   * Checks that a table's key id stays as it is.
   *
   * @param exists whether there is a table already
   */
  public static void check(
      String tableName, boolean exists, Map<String, String> before, Map<String, String> after) {
    String old = EncryptionProperties.keyId(before);
    String wanted = EncryptionProperties.keyId(after);
    if (!exists || Objects.equals(old, wanted)) {
      return;
    }

    if (old == null) {
      throw new NotSupportedException(
              String.format(
                  "%s cannot be set on a table that is not encrypted: its files would stay"
                      + " plaintext",
                  EncryptionProperties.KEY_ID),
              String.format(
                  "%s encrypts it in place: its rows are copied into encrypted files.",
                  SqlNames.call("encrypt_table", tableName, SqlNames.argument("key_id", wanted))))
          .inTable(tableName);
    }

    String how =
        wanted == null
            ? String.format(
                "%s makes it plaintext: its rows are copied into plaintext files.",
                SqlNames.call("decrypt_table", tableName, "confirm => true"))
            : String.format(
                "To change the master key: %s, which rewraps the table's KEKs.",
                SqlNames.call(
                    "rotate_master_key", tableName, SqlNames.argument("new_key_id", wanted)));
    throw new NotSupportedException(
            String.format(
                "%s is '%s' and cannot be %s",
                EncryptionProperties.KEY_ID,
                old,
                wanted == null ? "removed" : "changed to '" + wanted + "' by itself"),
            how)
        .inTable(tableName);
  }

  /** Whether a commit gives an encrypted table another master key, which wraps all of its KEKs. */
  static boolean isRotated(TableMetadata base, TableMetadata metadata) {
    String before = base == null ? null : EncryptionProperties.keyId(base.properties());
    String after = EncryptionProperties.keyId(metadata.properties());
    List<EncryptedKey> keks = Kek.all(metadata);
    return before != null
        && after != null
        && !before.equals(after)
        && !keks.isEmpty()
        && keks.stream().allMatch(kek -> after.equals(kek.encryptedById()));
  }

  /**
   * Whether a commit encrypts a table that is not: it adds a KEK of its own, and no snapshot or
   * statistics file stays of those that it had. A replacement that began before the table was
   * decrypted adds none.
   */
  static boolean isEncrypted(TableMetadata base, TableMetadata metadata) {
    if (base == null || EncryptionProperties.wasEncrypted(base)) {
      return false;
    }

    String after = EncryptionProperties.keyId(metadata.properties());
    List<EncryptedKey> keks = Kek.all(metadata);
    return after != null
        && !keks.isEmpty()
        && keks.stream()
            .allMatch(kek -> after.equals(kek.encryptedById()) && isAdded(metadata, kek))
        && metadata.snapshots().stream().allMatch(snapshot -> isNew(base, snapshot))
        && metadata.statisticsFiles().isEmpty()
        && metadata.partitionStatisticsFiles().isEmpty();
  }

  private static boolean isAdded(TableMetadata metadata, EncryptedKey kek) {
    return metadata.changes().stream()
        .anyMatch(
            change ->
                change instanceof MetadataUpdate.AddEncryptionKey added
                    && added.key().keyId().equals(kek.keyId()));
  }

  private static boolean isNew(TableMetadata base, Snapshot snapshot) {
    return snapshot.keyId() != null && base.snapshot(snapshot.snapshotId()) == null;
  }

  /** Whether a commit restores the key id that was removed: one that wrapped the KEKs. */
  static boolean isRestored(TableMetadata base, TableMetadata metadata) {
    String after = EncryptionProperties.keyId(metadata.properties());
    return base != null
        && EncryptionProperties.keyId(base.properties()) == null
        && after != null
        && Kek.all(base).stream().anyMatch(kek -> after.equals(kek.encryptedById()));
  }

  /**
   * Refuses metadata without a key id of a table that had one.
   *
   * @param known the key id that it is known to have had, or null
   * @throws NotEncryptedException when it is known, and the metadata is as decrypt_table makes it
   * @throws TamperedException when it is known, or the KEKs or the snapshot in force tell
   */
  public static void refuseLost(String tableName, TableMetadata metadata, String known) {
    String former = metadata.properties().get(EncryptionProperties.FORMER_KEY_ID);
    if (known != null && former != null && isWithoutKeys(metadata)) {
      throw new NotEncryptedException(
              String.format(
                  "It was, with '%s', when this session loaded it, and its properties say that"
                      + " decrypt_table has made it plaintext since (from '%s'). Load it again"
                      + " (REFRESH TABLE), and write again what was written for the encrypted"
                      + " table. If nobody of yours decrypted it, find out who changed its"
                      + " metadata. Nothing was read or written.",
                  known, former))
          .inTable(tableName);
    }

    String lost = known != null ? known : EncryptionProperties.masterKeyId(metadata);
    if (lost != null) {
      throw new TamperedException(
              String.format(
                  "%s is gone from the table's metadata (it was '%s'): a client without"
                      + " encryption, or someone with access to the metadata, removed it",
                  EncryptionProperties.KEY_ID, lost),
              String.format(
                  "Find out who did. ALTER TABLE %s SET TBLPROPERTIES ('%s'='%s') puts it back,"
                      + " and so does %s; then verify the table. Nothing was read or written.",
                  tableName,
                  EncryptionProperties.KEY_ID,
                  lost,
                  SqlNames.call("repair_table", tableName, "confirm => true")))
          .inTable(tableName);
    }

    Snapshot current = metadata.currentSnapshot();
    if (current != null && current.keyId() != null) {
      throw new TamperedException(
              String.format(
                  "%s and the table's keys are gone from its metadata: manifest list %s was written"
                      + " encrypted",
                  EncryptionProperties.KEY_ID, current.manifestListLocation()),
              "A client without encryption, or someone with access to the metadata, removed them:"
                  + " find out who. Restore the metadata from a backup or an object version."
                  + " Nothing was read or written.")
          .inTable(tableName);
    }
  }

  private static boolean isWithoutKeys(TableMetadata metadata) {
    return metadata.encryptionKeys().isEmpty()
        && metadata.snapshots().stream().allMatch(snapshot -> snapshot.keyId() == null);
  }
}
