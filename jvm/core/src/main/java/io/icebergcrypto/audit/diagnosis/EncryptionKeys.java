package io.icebergcrypto.audit.diagnosis;

import io.icebergcrypto.IcebergCryptoException;
import io.icebergcrypto.NotEncryptedException;
import io.icebergcrypto.NotSupportedException;
import io.icebergcrypto.TamperedException;
import io.icebergcrypto.audit.UncachedKms;
import io.icebergcrypto.catalog.CatalogContext;
import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.config.EncryptionProperties;
import io.icebergcrypto.format.Json;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;

/**
 * The keys of one table, as far as its metadata and its KMS tell: no manifest is read, and the KMS
 * is asked once for each KEK and value key, and for a master key only when none of these that it
 * wraps could be unwrapped. The keys of data files, delete files and manifests are in the
 * manifests, and so are not here.
 *
 * @param table the table's full name
 * @param keyId its master key; null when it was removed from its properties
 * @param dataKeyLength the table property of new keys, as it is written; null: Iceberg's 16
 * @param kekMaxAgeDays the age in days from which on a KEK is overdue
 * @param kms which KMS was asked
 * @param kmsCalls how many keys it was asked for
 * @param kmsProblem why it did not answer; null: it did
 * @param keys master keys, KEKs, value keys and the entries of the metadata, in this order
 */
public record EncryptionKeys(
    String table,
    String keyId,
    String dataKeyLength,
    int kekMaxAgeDays,
    String kms,
    int kmsCalls,
    String kmsProblem,
    List<KeyEntry> keys) {

  /**
   * Lists the keys of a table.
   *
   * @throws NotSupportedException when it is not encrypted
   * @throws TamperedException when its metadata is refused: what it lists may be anyone's
   */
  public static EncryptionKeys of(EncryptedCatalog catalog, TableIdentifier identifier) {
    CatalogContext context = catalog.context();
    BaseTable table = context.unchecked(identifier);
    TableMetadata metadata = table.operations().current();
    if (!EncryptionProperties.wasEncrypted(metadata)) {
      throw new NotEncryptedException(
              "Verify it to see its files; encrypt_table encrypts it in place.")
          .inTable(table.name());
    }

    UncachedKms asked = new UncachedKms(context::kms, null, table.name(), metadata.uuid());
    AuditedKms kms = new AuditedKms(asked);
    try {
      KeyAudit audit =
          new KeyAudit(
              table,
              kms,
              context.settings().kekMaxAgeDays(),
              context.behind().isHive(),
              context.allowedKeyIds());
      List<KeyEntry> keys = audit.keys(metadataProblem(context, table, kms));
      return new EncryptionKeys(
          table.name(),
          EncryptionProperties.keyId(metadata.properties()),
          metadata.properties().get(TableProperties.ENCRYPTION_DEK_LENGTH),
          context.settings().kekMaxAgeDays(),
          kms.toString(),
          asked.calls(),
          audit.silence(),
          keys);
    } finally {
      kms.close();
    }
  }

  /** Why a load would refuse the table for another reason than tampering, or null. */
  private static String metadataProblem(CatalogContext context, BaseTable table, AuditedKms kms) {
    try {
      context.checkMetadata(table, () -> kms);
      return null;
    } catch (IcebergCryptoException e) {
      if (kms.hasRefused()) {
        return null; // the row of the KEK says so
      }

      if (e instanceof TamperedException) {
        throw e;
      }

      return e.problem();
    }
  }

  /** The names and values for JSON, with the keys as rows. */
  public Map<String, Object> toMap() {
    Map<String, Object> json = Json.map(this);
    json.remove("keys");
    json.put("rows", keys.stream().map(Json::map).toList());
    return json;
  }
}
