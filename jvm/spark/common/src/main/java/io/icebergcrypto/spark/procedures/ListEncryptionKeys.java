package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.audit.EncryptionKeys;
import io.icebergcrypto.audit.KeyEntry;
import io.icebergcrypto.catalog.EncryptedCatalog;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * {@code CALL system.encryption_keys(table => ...)}: one row for each key of a table, without any
 * key's bytes. See {@link EncryptionKeys}.
 */
final class ListEncryptionKeys extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "encryption_keys";

  private static final StructType OUTPUT =
      new StructType()
          .add("key_id", DataTypes.StringType, false)
          .add("kind", DataTypes.StringType, false)
          .add("encrypted_by", DataTypes.StringType)
          .add("created_at", DataTypes.TimestampType)
          .add("age_days", DataTypes.LongType)
          .add("snapshots", DataTypes.IntegerType, false)
          .add("overdue", DataTypes.BooleanType, false)
          .add("kms_answers", DataTypes.BooleanType)
          .add("authenticated_wrapping", DataTypes.BooleanType)
          .add("problem", DataTypes.StringType)
          .add("used_for", DataTypes.StringType)
          .add("key_length", DataTypes.IntegerType)
          .add("key_version", DataTypes.IntegerType);

  ListEncryptionKeys(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, encrypted, OUTPUT);
  }

  @Override
  public String description() {
    return "Lists the keys of an encrypted table, and asks its KMS for them";
  }

  @Override
  List<Object[]> run(EncryptedCatalog encrypted, TableIdentifier table, InternalRow input) {
    return EncryptionKeys.of(encrypted, table).keys().stream()
        .map(ListEncryptionKeys::row)
        .toList();
  }

  private static Object[] row(KeyEntry key) {
    Long micros =
        key.createdAt() == null ? null : ChronoUnit.MICROS.between(Instant.EPOCH, key.createdAt());
    return new Object[] {
      UTF8String.fromString(key.keyId()),
      UTF8String.fromString(key.kind().label()),
      UTF8String.fromString(key.encryptedBy()),
      micros,
      key.ageDays(),
      key.snapshots(),
      key.overdue(),
      key.kmsAnswers(),
      key.authenticatedWrapping(),
      UTF8String.fromString(key.problem()),
      UTF8String.fromString(key.usedFor()),
      key.length(),
      key.keyVersion()
    };
  }
}
