package io.icebergcrypto.lifecycle;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Outcome;
import io.icebergcrypto.metadata.Kek;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.encryption.EncryptedKey;

/**
 * A new KEK of a table, which encrypts the keys of all manifest lists from its commit on; and, if
 * wanted, those of the snapshots that the table has. No file is rewritten.
 *
 * @param table the table's full name
 * @param keyId its master key, which wraps the KEK
 * @param oldKekId the KEK that was in use before; null when the table had none
 * @param newKekId the new one; null in a dry run
 * @param rewrapped how many keys of manifest lists and statistics files were encrypted again
 * @param removedKeks how many KEKs the table no longer has
 * @param keptKeks how many older KEKs it still has
 * @param kmsCalls how many calls of the KMS it took
 * @param committed whether the table was changed: not by a dry run
 */
public record KekRotation(
    String table,
    String keyId,
    String oldKekId,
    String newKekId,
    int rewrapped,
    int removedKeks,
    int keptKeks,
    int kmsCalls,
    boolean committed)
    implements Outcome {
  /**
   * Gives a table a new KEK, in one commit.
   *
   * @param rewrap whether the keys of the snapshots that the table has are encrypted with it, too,
   *     so that older KEKs can go. On Hive they always are, and go at once: stock Iceberg takes any
   *     KEK that the table has
   * @param dryRun true: everything but the commit, the calls of the KMS included
   * @throws NotSupportedException when the table is not encrypted
   * @throws TamperedException when a key does not decrypt; nothing was changed
   * @throws IcebergCryptoException the KMS's own error, or that of the commit; nothing was changed
   */
  public static KekRotation run(
      EncryptedCatalog catalog, TableIdentifier identifier, boolean rewrap, boolean dryRun) {
    RotationTarget table = RotationTarget.load(catalog, identifier);
    String oldKekId = Kek.newest(table.current()).map(EncryptedKey::keyId).orElse(null);
    boolean all = rewrap || catalog.context().behind().isHive();
    NewKek made = new NewKek(table, all, catalog.context().behind().isHive());
    if (dryRun) {
      made.in(table.current());
    } else {
      table.commit(made::in);
      String keyId = made.masterKeyId();
      MasterKeyRotation.follow(
          table,
          new ValueKeyWrapping(table, catalog.context().allowedKeyIds(), keyId, false),
          keyId);
    }

    return new KekRotation(
        table.name(),
        EncryptionProperties.keyId(table.current().properties()),
        oldKekId,
        dryRun ? null : made.kekId(),
        made.rewrapped(),
        made.removed().size(),
        made.kept().size(),
        table.kms().calls(),
        !dryRun);
  }

  @Override
  public String message() {
    StringBuilder text = new StringBuilder();
    text.append(committed ? "a new KEK is in use" : "a new KEK would be in use");
    if (rewrapped > 0) {
      text.append(
          String.format(
              "; %d %s %s with it",
              rewrapped,
              rewrapped == 1
                  ? "key of a manifest list or statistics file"
                  : "keys of manifest lists and statistics files",
              committed ? "encrypted" : "would be encrypted"));
    }

    if (removedKeks > 0) {
      text.append(String.format("; %s %s", keks(removedKeks), committed ? "removed" : "would go"));
    }

    if (keptKeks > 0) {
      text.append(String.format("; %s kept", keks(keptKeks)));
    }

    return text.append(committed ? "" : "; nothing was changed").toString();
  }

  private static String keks(int number) {
    return number == 1 ? "1 older KEK" : number + " older KEKs";
  }
}
