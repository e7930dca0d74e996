package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.InvalidConfigurationException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.commit.KeyRetention;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Outcome;
import io.icebergcrypto.kms.CachingKmsClient;
import io.icebergcrypto.metadata.Kek;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * What it took to have a table's KEKs wrapped by another master key, or by the newest version of
 * the same. The KEKs themselves stay, and so does all that they encrypt. Value keys that the table
 * keeps are rewrapped with them ({@link ValueKeyWrapping}).
 *
 * @param table the table's full name
 * @param oldKeyId the table's key id before
 * @param newKeyId the one that it has now
 * @param keks how many KEKs were rewrapped
 * @param oldVersions the versions of the master key that wrapped them before, such as "1, 2"; null
 *     when the KEKs do not show them
 * @param newVersions the one that wraps them now; null when they do not say
 * @param kmsCalls how many calls of the KMS it took
 * @param committed whether the table was changed: not by a dry run
 * @param valueKeys how many versions of value keys were rewrapped
 * @param valueKeysLeft those that other master keys wrap and that stayed as they were, such as "hr
 *     (k3)"; null: none
 */
public record MasterKeyRotation(
    String table,
    String oldKeyId,
    String newKeyId,
    int keks,
    String oldVersions,
    String newVersions,
    int kmsCalls,
    boolean committed,
    int valueKeys,
    String valueKeysLeft)
    implements Outcome {
  /** Commits of clients that began before on a REST catalog may bring a KEK of the old key. */
  private static final int ROUNDS = 5;

  /**
   * Rewraps all KEKs of a table, in one commit.
   *
   * @param newKeyId the id of another master key of the same KMS; null: the same key, whose newest
   *     version wraps, as that of each value key's own does
   * @param dryRun true: everything but the commit, the calls of the KMS included
   * @throws NotSupportedException when the table is not encrypted
   * @throws InvalidConfigurationException when the new key id is empty, or cannot vouch for
   *     metadata that is authenticated
   * @throws IcebergCryptoException the KMS's own error, or that of the commit; nothing was changed
   */
  public static MasterKeyRotation run(
      EncryptedCatalog catalog, TableIdentifier identifier, String newKeyId, boolean dryRun) {
    return run(
        RotationTarget.load(catalog, identifier), catalog, newKeyId, newKeyId == null, dryRun);
  }

  /**
   * Has all KEKs of a table wrapped by a master key of another KMS, in one commit. From then on,
   * the former KMS is not needed for the table, and clients that have it cannot use the table.
   *
   * @param catalog the table's catalog, set up with the KMS that is to wrap. {@code
   *     encryption.allowed-key-ids} has to allow both keys
   * @param newKeyId the id of the master key there; null: the id that the table has
   * @param former the KMS that wrapped the table's KEKs, such as {@link CatalogContext#kms()} of a
   *     catalog that is set up with it; it does not matter which tables that has
   * @param dryRun true: everything but the commit, the calls of both KMSs included
   * @throws NotSupportedException when the table is not encrypted
   * @throws InvalidConfigurationException when the new key id is empty, or one of the keys cannot
   *     vouch for metadata that is authenticated
   * @throws IcebergCryptoException the error of a KMS, or that of the commit; nothing was changed
   */
  public static MasterKeyRotation run(
      EncryptedCatalog catalog,
      TableIdentifier identifier,
      String newKeyId,
      CachingKmsClient former,
      boolean dryRun) {
    RotationTarget table = RotationTarget.load(catalog, identifier, former);
    String keyId = EncryptionProperties.keyId(table.current().properties());
    checkNew(catalog, table.name(), newKeyId == null ? keyId : newKeyId);
    return run(table, catalog, newKeyId, true, dryRun);
  }

  private static MasterKeyRotation run(
      RotationTarget table,
      EncryptedCatalog catalog,
      String newKeyId,
      boolean allValueKeys,
      boolean dryRun) {
    String oldKeyId = EncryptionProperties.keyId(table.current().properties());
    if (newKeyId != null && !newKeyId.equals(oldKeyId)) {
      checkNew(catalog, table.name(), newKeyId);
    }

    String wanted = newKeyId == null ? oldKeyId : newKeyId;
    KekWrapping keks = new KekWrapping(table, wanted);
    ValueKeyWrapping valueKeys =
        new ValueKeyWrapping(table, catalog.context().allowedKeyIds(), wanted, allValueKeys);
    if (dryRun) {
      wrap(table.current(), keks, valueKeys);
    } else {
      commit(table, keks, valueKeys, wanted, newKeyId == null);
    }

    return new MasterKeyRotation(
        table.name(),
        oldKeyId,
        wanted,
        keks.keks(),
        keks.versionsBefore(),
        keks.versions(),
        table.kms().calls(),
        !dryRun,
        valueKeys.keys(),
        valueKeys.left());
  }

  private static void checkNew(EncryptedCatalog catalog, String table, String newKeyId) {
    if (newKeyId.isBlank()) {
      throw new InvalidConfigurationException(
              "the new key id is empty", "Give the id of a master key in the KMS.")
          .inTable(table);
    }

    catalog.context().checkMasterKey(table, newKeyId);
  }

  private static void commit(
      RotationTarget table,
      KekWrapping keks,
      ValueKeyWrapping valueKeys,
      String keyId,
      boolean keepsKeyId) {
    for (int round = 0; round < ROUNDS; round++) {
      // before the table is loaded for the commit: no REST server refuses properties that another
      // client has changed since then, such as those of a value key that was dropped
      wrap(table.current(), keks, valueKeys);
      table.commit(
          metadata -> {
            requireKeyId(table.name(), metadata, keyId, keepsKeyId);
            return rotated(metadata, keks, valueKeys, keyId);
          });
      if (!keyId.equals(EncryptionProperties.keyId(table.current().properties()))) {
        follow(table, valueKeys, keyId);
        return;
      }

      if (isDone(table.current(), keks, valueKeys, keyId)) {
        return;
      }
    }

    throw new IcebergCryptoException(
            String.format(
                "its key id is '%s' now, but other commits have since added KEKs or value keys of"
                    + " another master key or version",
                keyId),
            "The table can be read and written. Call rotate_master_key again, before the old key is"
                + " removed.")
        .inTable(table.name());
  }

  /**
   * Rewraps what a commit has left under a master key, where another rotation has given the table
   * another one in the same moment: a REST server takes both commits.
   *
   * @param valueKeys wraps those of the former one
   * @param formerKeyId the master key that the table had when the commit began
   */
  static void follow(RotationTarget table, ValueKeyWrapping valueKeys, String formerKeyId) {
    TableMetadata metadata = table.current();
    String keyId = EncryptionProperties.keyId(metadata.properties());
    Set<String> unneeded = unneeded(metadata);
    boolean isLeft =
        keyId != null
            && !keyId.equals(formerKeyId)
            && Kek.all(metadata).stream()
                .filter(kek -> !unneeded.contains(kek.keyId()))
                .anyMatch(kek -> formerKeyId.equals(kek.encryptedById()));
    if (!isLeft) {
      return;
    }

    try {
      commit(table, new KekWrapping(table, keyId), valueKeys.to(keyId), keyId, true);
    } catch (IcebergCryptoException e) {
      throw e.withHint(
          String.format(
              "In the same moment, another rotation gave the table the key id '%s': call"
                  + " rotate_master_key before '%s' is removed, which KEKs still need.",
              keyId, formerKeyId));
    }
  }

  /** Calls the KMS for all that is wrapped then. */
  private static void wrap(TableMetadata metadata, KekWrapping keks, ValueKeyWrapping valueKeys) {
    wrapped(metadata, keks, unneeded(metadata));
    valueKeys.properties(metadata);
  }

  /** Another client may have just given the table another key. */
  private static void requireKeyId(
      String table, TableMetadata metadata, String keyId, boolean keepsKeyId) {
    String now = EncryptionProperties.keyId(metadata.properties());
    if (keepsKeyId && !keyId.equals(now)) {
      throw new NotSupportedException(
              String.format("its key id was '%s', and was changed to '%s' meanwhile", keyId, now),
              "Nothing was changed by this call. Call rotate_master_key again if need be.")
          .inTable(table);
    }
  }

  /** Nothing is left to do. */
  private static boolean isDone(
      TableMetadata metadata, KekWrapping keks, ValueKeyWrapping valueKeys, String keyId) {
    return Kek.all(metadata).stream()
            .allMatch(kek -> keks.has(kek.keyId()) && keyId.equals(kek.encryptedById()))
        && valueKeys.isDone(metadata);
  }

  private static TableMetadata rotated(
      TableMetadata metadata, KekWrapping keks, ValueKeyWrapping valueKeys, String keyId) {
    TableMetadata.Builder builder = TableMetadata.buildFrom(metadata);
    Set<String> unneeded = unneeded(metadata);
    List<EncryptedKey> wrapped = wrapped(metadata, keks, unneeded);
    // with the KEKs go the keys that they encrypted, which would look like KEKs then
    unneeded.forEach(builder::removeEncryptionKey);
    // first all out, then in: they keep their order
    Kek.all(metadata).forEach(kek -> builder.removeEncryptionKey(kek.keyId()));
    wrapped.forEach(builder::addEncryptionKey);
    builder.setProperties(valueKeys.properties(metadata));
    if (!keyId.equals(EncryptionProperties.keyId(metadata.properties()))) {
      if (wrapped.isEmpty()) { // an empty table that another client made
        builder.addEncryptionKey(keks.made(metadata));
      }

      builder.setProperties(Map.of(EncryptionProperties.KEY_ID, keyId));
    }

    return builder.build();
  }

  /** The KEKs that something needs: the others go, and their master key may be gone. */
  private static List<EncryptedKey> wrapped(
      TableMetadata metadata, KekWrapping keks, Set<String> unneeded) {
    return Kek.all(metadata).stream()
        .filter(kek -> !unneeded.contains(kek.keyId()))
        .map(kek -> keks.of(kek, metadata.encryptionKeys()))
        .toList();
  }

  private static Set<String> unneeded(TableMetadata metadata) {
    return KeyRetention.unneeded(metadata, System.currentTimeMillis());
  }

  @Override
  public String message() {
    String number = number(keks, "KEK");
    if (oldKeyId.equals(newKeyId)
        && newVersions != null
        && newVersions.equals(oldVersions)
        && valueKeys == 0) {
      return String.format(
          "nothing to rotate to: the KMS has no later version of '%s' than %s, which wraps %s as"
              + " before. Create one (iceberg-crypto kms rotate-key, or the KMS's own tools), and"
              + " rotate again",
          newKeyId, newVersions, number);
    }

    String by =
        !oldKeyId.equals(newKeyId)
            ? "'" + newKeyId + "' instead of '" + oldKeyId + "'"
            : newVersions == null
                ? "the newest version of '" + newKeyId + "'"
                : String.format("version %s of '%s'", newVersions, newKeyId);
    if (valueKeys > 0) {
      by += ", together with " + number(valueKeys, "value key");
    }

    String left =
        valueKeysLeft == null
            ? ""
            : "; value keys of other master keys stay as they are: " + valueKeysLeft;
    return committed
        ? String.format("%s wrapped by %s; no file was rewritten%s", number, by, left)
        : String.format("%s would be wrapped by %s; nothing was changed%s", number, by, left);
  }

  private static String number(int count, String what) {
    return count == 1 ? "1 " + what : count + " " + what + "s";
  }
}
