package io.icebergcrypto.spark.procedures;

import io.icebergcrypto.catalog.EncryptedCatalog;
import io.icebergcrypto.lifecycle.MasterKeyRotation;
import java.util.List;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * {@code CALL system.rotate_master_key(table => ... [, new_key_id => ...] [, dry_run => true])}:
 * has a table's KEKs wrapped by the newest version of its master key, or by another one. See {@link
 * MasterKeyRotation}.
 */
final class RotateMasterKey extends TableProcedure {
  /** The procedure's name. */
  static final String NAME = "rotate_master_key";

  private static final StructType OUTPUT =
      new StructType()
          .add("table", DataTypes.StringType, false)
          .add("old_key_id", DataTypes.StringType, false)
          .add("new_key_id", DataTypes.StringType, false)
          .add("keks", DataTypes.IntegerType, false)
          .add("old_versions", DataTypes.StringType)
          .add("new_versions", DataTypes.StringType)
          .add("kms_calls", DataTypes.IntegerType, false)
          .add("committed", DataTypes.BooleanType, false)
          .add("message", DataTypes.StringType, false);

  private final EncryptedCatalog encrypted;

  RotateMasterKey(TableCatalog catalog, EncryptedCatalog encrypted) {
    super(NAME, catalog, OUTPUT);
    this.encrypted = encrypted;
  }

  @Override
  public String description() {
    return "Has a table's KEKs wrapped by the newest version of its master key, or by another key";
  }

  @Override
  public ProcedureParameter[] parameters() {
    return new ProcedureParameter[] {text("table"), optionalText("new_key_id"), flag("dry_run")};
  }

  @Override
  List<Object[]> run(TableIdentifier table, InternalRow input) {
    String newKeyId = input.isNullAt(1) ? null : given(input, 1);
    return List.<Object[]>of(
        row(MasterKeyRotation.run(encrypted, table, newKeyId, isSet(input, 2)).toMap()));
  }
}
